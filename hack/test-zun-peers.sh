#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs Zun's own client and the real Keystone, of Debian, beside the emulator of Zun and provider zun, and writes docs/reports/zun-peers.md. It needs
# apt-get install python3-keystone python3-zunclient python3-openstackclient.
set -euo pipefail

cd "$(dirname "$0")/.."
version() { dpkg-query --show --showformat='${Version}' "$1" 2>/dev/null || echo unknown; }
failed=
output=$(cd providers && VK_ZUN_PEERS=1 go test -count=1 -v -timeout 20m -run '^TestPeers$' ./zun) || failed=yes
table=$(sed -n 's/.*_test\.go:[0-9]*: \(| .* |\)$/\1/p' <<<"$output")
[ -n "$table" ] || { echo "$output" >&2; exit 1; }
cat >docs/reports/zun-peers.md <<MD
# Zun's own client and Keystone

\`make zun-peers\` wrote this on $(date -u +%Y-%m-%d). Keystone $(version python3-keystone), python3-zunclient $(version python3-zunclient) and python3-openstackclient $(version python3-openstackclient), of Debian, run
beside the emulator of Zun. The emulator asks Keystone about each token, as Zun does. The containers are goroutines.

| What | |
|---|---|
$table
MD
echo "$table"
[ -z "$failed" ] || { echo "$output" >&2; exit 1; }
