#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds a program of the module in the current folder, and says every 10 seconds how far it has come and how long it will take.
# Usage: hack/go-build.sh OUTPUT ARGUMENTS-OF-GO-BUILD...
set -euo pipefail

output=$(realpath -ms "$1") name=$(basename "$1")
shift
mkdir -p "$(dirname "$output")"
work=$(mktemp -d)
trap 'rm -rf "$work" "$output.new"' EXIT

# "go build -n" names the packages that are not in the cache, twice at most, and "go build -v" each of them when it begins with it.
packages=$(go build -n -o "$output.new" "$@" 2>&1 | sed -n '/^# [^ ]*$/p' | sort -u | wc -l) || true # go build says below what is wrong
SECONDS=0
go build -v -o "$output.new" "$@" >"$work/log" 2>&1 &
build=$!
(
  while sleep "${GO_BUILD_EVERY:-10}"; do
    compiled=$(grep -vc '^go: ' "$work/log" || true)
    if [ "$compiled" -ge "$packages" ]; then
      echo "$name: $SECONDS s, linking"
    else
      left=$(((packages - compiled) * SECONDS / (compiled + 1)))
      echo "$name: $SECONDS s, $((compiled * 100 / packages)) % of $packages packages, about $((left / 60)) min $((left % 60)) s left"
    fi
  done
) &
ticker=$!
status=0
wait "$build" || status=$?
kill "$ticker" 2>/dev/null || true
wait "$ticker" 2>/dev/null || true
if [ "$status" -ne 0 ]; then
  echo "$name: the build failed:" >&2
  grep -v '^go: downloading' "$work/log" | tail -n 40 >&2
  exit "$status"
fi
mv "$output.new" "$output"
echo "$name: built in $SECONDS s ($(du -m "$output" | cut -f1) MB)"
