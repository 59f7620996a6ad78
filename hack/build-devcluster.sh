#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds devcluster, a Kubernetes control plane in one binary, and says how far it has come.
# Usage: hack/build-devcluster.sh [OUTPUT]     (default: bin/devcluster)
#
# The versions that kubectl and the API server report are the one that go.mod names.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
output=$(realpath -m "${1:-$root/bin/devcluster}")
cd "$root/devcluster"
. "$root/hack/goenv.sh"

module_version() { go list -m -f '{{.Version}}' "$1"; }

version=$(module_version k8s.io/kubernetes)
minor=${version#v*.}
ldflags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  ldflags+=" -X $package.gitVersion=$version"
  ldflags+=" -X $package.gitMajor=${version:1:1} -X $package.gitMinor=${minor%%.*}"
  ldflags+=" -X $package.gitCommit=unknown -X $package.gitTreeState=clean"
done

echo "devcluster: building Kubernetes $version and etcd $(module_version go.etcd.io/etcd/server/v3) into $output"
echo "devcluster: on two cores the first build takes 6 to 10 minutes and 4 GB of memory, later ones seconds"

mkdir -p "$(dirname "$output")"
log=$(mktemp)
draft=$output.new
trap 'rm -f "$log" "$draft"' EXIT

# "go build -v" names each package that it compiles, and nothing that is in its cache.
SECONDS=0
go build -v -ldflags "$ldflags" -o "$draft" . >"$log" 2>&1 &
build=$!
(
  while sleep 15; do
    echo "devcluster: ${SECONDS} s, $(grep -vc '^go: ' "$log" || true) packages compiled so far"
  done
) &
ticker=$!
status=0
wait "$build" || status=$?
kill "$ticker" 2>/dev/null || true
wait "$ticker" 2>/dev/null || true

if [ "$status" -ne 0 ]; then
  echo "devcluster: the build failed:" >&2
  grep -v '^go: downloading' "$log" | tail -n 40 >&2
  exit "$status"
fi
mv "$draft" "$output"
echo "devcluster: built in ${SECONDS} s ($(du -m "$output" | cut -f1) MB)"
