#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds devcluster, a Kubernetes control plane in one binary, and says how far it has come.
# Usage: hack/build-devcluster.sh [OUTPUT]     (default: bin/devcluster)
#
# The versions that kubectl and the API server report are the one that go.mod names.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
output=$(realpath -ms "${1:-$root/bin/devcluster}")
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
echo "devcluster: on two cores the first build takes 5 to 10 minutes and 4 GB of memory, later ones seconds"

"$root/hack/go-build.sh" "$output" "${quick_kubernetes[@]}" -ldflags "$ldflags" .
