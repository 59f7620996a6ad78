#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Stops what hack/up.sh started and throws its data away. Takes the same variables.
set -euo pipefail

cd "$(dirname "$0")/.."
. hack/demo.sh

# Containers outlive their node: the pod ends first, while somebody can end it.
if node_runs && [ "$provider" = process ]; then
  "${kubectl[@]}" delete pods --all --all-namespaces --field-selector "spec.nodeName=$node" --timeout=60s >/dev/null 2>&1 ||
    echo "✗ pods could not be deleted: their processes may be left" >&2
fi
if node_runs; then
  pid=$(cat "$state/pid")
  kill "$pid"
  # Wait for the process without being its parent; it stops within five seconds.
  timeout 10 tail --pid="$pid" -f /dev/null || kill -9 "$pid"
  echo "✓ virtual node $node stopped"
fi
rm -rf "$state"
"$root/bin/devcluster" down --name "$cluster" --delete
