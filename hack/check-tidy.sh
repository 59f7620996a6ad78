#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks that the go.mod and go.sum of every module are what `go mod tidy` makes of them, and so the module file that
# builds the library with the newest Kubernetes.
set -euo pipefail

cd "$(dirname "$0")/.."
failed=()
while read -r module; do
  go mod tidy -C "$module" -diff >/dev/null 2>&1 || failed+=("$module")
done < <(find . -name '.?*' -prune -o -name testdata -prune -o -name go.mod -printf '%h\n' | sort)
go mod tidy -modfile=test/compat/newest.mod -diff >/dev/null 2>&1 || failed+=("-modfile=test/compat/newest.mod")
if [ ${#failed[@]} -gt 0 ]; then
  echo "not tidy: ${failed[*]}; run 'go mod tidy' in each of them, or with the flag" >&2
  exit 1
fi
