#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds what a conformance run needs beside the control plane and the virtual node: without arguments Kubernetes'
# end-to-end suite and its runner, kube-proxy and the programs of the suite's images, which every run needs; with
# arguments only what they name.
# Usage: hack/build-conformance.sh [coredns] [kubelet]
#
# Versions are those of the modules test/conformance/programs, test/conformance/coredns and bench/kubelet.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/hack/goenv.sh"
out=$root/bin/conformance
mkdir -p "$out"

cd "$root/test/conformance/programs"
kubernetes=k8s.io/kubernetes
version=$(go list -m -f '{{.Version}}' $kubernetes)
minor=${version#v*.}
ldflags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  ldflags+=" -X $package.gitVersion=$version -X $package.gitMajor=${version:1:1} -X $package.gitMinor=${minor%%.*}"
  ldflags+=" -X $package.gitCommit=unknown -X $package.gitTreeState=clean"
done

# build NAME PACKAGE COMMAND... runs a go command that writes the program.
build() {
  SECONDS=0
  "${@:3}" "${flags[@]}" -ldflags "$ldflags" -o "$out/$1.new" "$2"
  mv "$out/$1.new" "$out/$1"
  echo "conformance: $1 built in $SECONDS s ($(du -m "$out/$1" | cut -f1) MB)"
}

# e2e.test is the last: make takes it as the sign that all are there. What is measured beside a virtual node, coredns and kubelet, has no such flags.
flags=()
every_run() {
  local flags=("${quick_kubernetes[@]}")
  build ginkgo github.com/onsi/ginkgo/v2/ginkgo go build
  build kube-proxy $kubernetes/cmd/kube-proxy go build
  build sample-apiserver k8s.io/sample-apiserver go build
  build etcd go.etcd.io/etcd/server/v3 go build
  build agnhost $kubernetes/test/images/agnhost go build
  build nnp $kubernetes/test/images/nonewprivs go build
  go list -m -f '{{.Dir}}' $kubernetes >"$out/kubernetes" # the images have some of its files
  (
    cd ..
    build sh ./standin/sh go build
    build pause github.com/virtual-kubelet/virtual-kubelet/internal/testing/containerdtest/pause go build
  )
  build e2e.test $kubernetes/test/e2e go test -c
}

[ $# -gt 0 ] || every_run
cd "$root/test/conformance"
for extra in "$@"; do
  case $extra in
    coredns) (cd coredns && build coredns . go build) ;;
    kubelet) (cd "$root/bench/kubelet" && build kubelet $kubernetes/cmd/kubelet go build) ;;
    *) echo "conformance: there is no program $extra" >&2; exit 2 ;;
  esac
done
