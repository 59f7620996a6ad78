#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Stops what hack/up.sh started and throws its data away. Takes the same variables.
set -euo pipefail

cd "$(dirname "$0")/.."
. hack/demo.sh

if node_runs; then
  pid=$(cat "$state/pid")
  kill "$pid"
  # Wait for the process without being its parent. It ends its pods first, which would outlive it.
  timeout 40 tail --pid="$pid" -f /dev/null || kill -9 "$pid"
  echo "✓ virtual node $node stopped"
fi
rm -rf "$state"
rmdir "$(dirname "$state")" 2>/dev/null || true
"$root/bin/devcluster" down --name "$cluster" --delete
