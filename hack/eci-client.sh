#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Lets the vendor's own client of ECI, of npm, talk to the emulator of the tests, and writes docs/reports/eci-client.md. It needs node and npm.
set -euo pipefail

cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap '[ -z "${emulator:-}" ] || kill "$emulator"; exec 3>&-; rm -rf "$work"' EXIT
command -v npm >/dev/null || { echo "the vendor's client needs node and npm" >&2; exit 1; }

(cd providers && go build -o "$work/emulate" ./internal/emulate)
cp hack/eci-client/package.json hack/eci-client/client.js "$work"
npm install --prefix "$work" --no-audit --no-fund --silent
mkfifo "$work/input"
"$work/emulate" -service eci -simulate -dir "$work" <"$work/input" &
emulator=$!
exec 3>"$work/input"
until [ -s "$work/provider.yaml" ]; do # it writes that when it listens
  kill -0 "$emulator"
  sleep 0.2
done
failed=
table=$(NODE_EXTRA_CA_CERTS=$work/ca.pem node "$work/client.js" "$work/provider.yaml" providers/emulator/eci/fields.json) || failed=yes
cat >docs/reports/eci-client.md <<MD
# The vendor's client of ECI and the emulator

\`make eci-client\` wrote this on $(date -u +%Y-%m-%d): \`@alicloud/eci20180808\` $(sed -n 's/.*"version": "\(.*\)".*/\1/p' "$work/node_modules/@alicloud/eci20180808/package.json") of npm, as it
comes, on node $(node --version), against the emulator of ECI that the tests of provider eci use. The client signs, encodes and decodes by its own code.

$table
MD
echo "$table"
[ -z "$failed" ]
