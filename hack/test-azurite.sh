#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the requests for blobs of provider azurebatch at Azurite, the vendor's emulator of Azure Storage, of npm, and writes docs/reports/azurite.md. It
# needs node and npm.
set -euo pipefail

cd "$(dirname "$0")/.."
version=3.35.0 # later ones need a newer node
command -v npm >/dev/null || { echo "Azurite needs node and npm" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
npm install --prefix "$work" --no-audit --no-fund --silent "azurite@$version"
failed=
output=$(cd providers && VK_AZURITE=$work/node_modules/.bin/azurite-blob go test -count=1 -v -run '^TestAzurite$' ./internal/azblobs) || failed=yes
table=$(sed -n 's/.*_test\.go:[0-9]*: \(| .* |\)$/\1/p' <<<"$output")
cat >docs/reports/azurite.md <<MD
# The requests for blobs and Azurite

\`make azurite\` wrote this on $(date -u +%Y-%m-%d): the requests that provider azurebatch and its tasks make for blobs, at Azurite $version of npm, the vendor's emulator
of Azure Storage, on node $(node --version). Azurite looks at the form of tokens, and not at their signature.

| What | |
|---|---|
$table
MD
echo "$table"
[ -z "$failed" ] || { echo "$output" >&2; exit 1; }
