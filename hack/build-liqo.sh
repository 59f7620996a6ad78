#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds a program of Liqo, and takes the definitions of Liqo's kinds, into bin/liqo: its controllers for the tests of provider liqo, or its
# virtual kubelet to compare with. It takes five minutes, and is not part of CI.
# Usage: hack/build-liqo.sh [liqo-controller-manager | virtual-kubelet]
#
# The module cannot be a dependency, as its go.mod replaces modules. So it is downloaded and built where it is; the hash is that of go.sum.
set -euo pipefail

module=github.com/liqotech/liqo
version=v1.0.1
program=${1:-liqo-controller-manager}
hash=h1:5YjAZtAaBxO7i8qZgWvkqlzS402pp5d1SmdgXB9nbFI=

out=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/bin/liqo
cd /
download=$(GOFLAGS=-mod=mod go mod download -json $module@$version)
field() { sed -n "s/^\t\"$1\": \"\(.*\)\",\?$/\1/p" <<<"$download"; }
[ "$(field Sum)" = "$hash" ] || { echo "liqo: $module $version has another hash than $hash" >&2; exit 1; }

mkdir -p "$out/crds"
SECONDS=0
GOWORK=off go build -C "$(field Dir)" -mod=readonly -trimpath -ldflags '-s -w' -o "$out/new" "./cmd/$program"
cp -f "$(field Dir)"/deployments/liqo/charts/liqo-crds/crds/*.yaml "$out/crds/"
chmod -R u+w "$out"
echo $version >"$out/version"
mv "$out/new" "$out/$program"
echo "liqo: $program $version built in $SECONDS s ($(du -m "$out/$program" | cut -f1) MB)"
