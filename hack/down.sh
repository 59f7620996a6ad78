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

memory=()
# What a process that was killed could not end: supervisors of containers and tasks of machines, which take their containers with them, those of
# sandboxes, which do not, and volumes in memory.
for left in "$state/process" "$state/emulator/process" "$state/emulator/machines"; do
  for cwd in /proc/[0-9]*/cwd; do
    case $(readlink "$cwd" 2>/dev/null) in
      "$left"/containers/* | "$left"/sandboxes/* | "$left"/*/workitems/*)
        pid=${cwd#/proc/} pid=${pid%/cwd}
        started=$(cat "/proc/$pid/task/"*/children 2>/dev/null || true)
        for child in $started; do # gVisor has its files in memory, where its root is
          root_dir=$(tr '\0' '\n' <"/proc/$child/cmdline" 2>/dev/null | sed -n 's|^--root=\(/dev/shm/vk-process-[0-9a-f]*\)/state$|\1|p' || true)
          [ -z "$root_dir" ] || memory+=("$root_dir")
        done
        for one in $pid $started; do
          kill -9 "$one" 2>/dev/null || true
          timeout 10 tail --pid="$one" -f /dev/null || true
        done
        ;;
    esac
  done
  awk -v dir="$left/" 'index($2, dir) == 1 {print $2}' /proc/self/mounts | while read -r mount; do umount -l "$mount"; done
  for made in "$left"/containers/*/ "$left"/sandboxes/*/; do
    [ -d "$made" ] || continue # the pattern itself: other nodes have groups of names that it matches
    find /sys/fs/cgroup -depth -type d -name "vk-$(basename "$made")" -exec rmdir {} + 2>/dev/null || true
  done
  # Those of its pods, whose names end with a hash of where the node has its pods.
  owner=$(printf %s "$left/pods" | sha256sum | cut -c1-8)
  find /sys/fs/cgroup -depth -type d \( -path "*/pods-*-$owner" -o -path "*/pods-*-$owner/*" \) -exec rmdir {} + 2>/dev/null || true
done
[ ${#memory[@]} -eq 0 ] || rm -rf "${memory[@]}"

# Machines that a process which was killed could not end.
for file in "$state"/kip/machines/*/pid; do
  pid=$(cat "$file" 2>/dev/null || true)
  [ -n "$pid" ] && tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q -- "-pidfile $file " || continue
  kill -9 "$pid" 2>/dev/null || true
  timeout 10 tail --pid="$pid" -f /dev/null || true
done

chmod -R u+w "$state" 2>/dev/null || true # images may have directories without that right
rm -rf "$state"
rmdir "$(dirname "$state")" "$(dirname "$(dirname "$state")")" 2>/dev/null || true
"$root/bin/devcluster" down --name "$cluster" --delete
[ -z "$lower" ] || CLUSTER=$lower NODE=worker PROVIDER=process hack/down.sh
