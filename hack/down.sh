#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Stops what hack/up.sh started and throws its data away. Takes the same variables.
set -euo pipefail

cd "$(dirname "$0")/.."
. hack/demo.sh

lower=$(cat "$state/lower" 2>/dev/null || true)

if node_runs; then
  pid=$(cat "$state/pid")
  kill "$pid"
  # Wait for the process without being its parent. It ends its pods first, which would outlive it.
  timeout 40 tail --pid="$pid" -f /dev/null || kill -9 "$pid"
  echo "✓ virtual node $node stopped"
fi

if emulator_runs; then
  pid=$(cat "$state/emulator/pid")
  kill "$pid"
  timeout 40 tail --pid="$pid" -f /dev/null || kill -9 "$pid" # it ends its containers first
  echo "✓ emulator stopped"
fi

# What a process that was killed could not end: supervisors of containers, which take their containers with them, and volumes in memory.
for left in "$state/process" "$state/emulator/process"; do
  for cwd in /proc/[0-9]*/cwd; do
    case $(readlink "$cwd" 2>/dev/null) in
      "$left"/containers/*)
        pid=${cwd#/proc/}
        kill -9 "${pid%/cwd}" 2>/dev/null || true
        timeout 10 tail --pid="${pid%/cwd}" -f /dev/null || true
        ;;
    esac
  done
  awk -v dir="$left/" 'index($2, dir) == 1 {print $2}' /proc/self/mounts | while read -r mount; do umount -l "$mount"; done
  for container in "$left"/containers/*/; do
    find /sys/fs/cgroup -depth -type d -name "vk-$(basename "$container")" -exec rmdir {} + 2>/dev/null || true
  done
done

chmod -R u+w "$state" 2>/dev/null || true # images may have directories without that right
rm -rf "$state"
rmdir "$(dirname "$state")" "$(dirname "$(dirname "$state")")" 2>/dev/null || true
"$root/bin/devcluster" down --name "$cluster" --delete
[ -z "$lower" ] || CLUSTER=$lower NODE=worker PROVIDER=process hack/down.sh
