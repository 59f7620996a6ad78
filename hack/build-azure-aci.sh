#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the virtual kubelet of the project azure-aci, to compare provider aci with, into bin/azure-aci. It takes six minutes, and is not part of CI.
#
# It is built where it is downloaded, with its own go.mod; the hash is that of go.sum.
set -euo pipefail

module=github.com/virtual-kubelet/azure-aci
version=v1.6.4
hash=h1:yIzUlojiD2vpdLJfAPYEi2HWc7lWnmJaaxKoFK9/T60=

out=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/bin/azure-aci
cd /
download=$(GOFLAGS=-mod=mod go mod download -json $module@$version)
field() { sed -n "s/^\t\"$1\": \"\(.*\)\",\?$/\1/p" <<<"$download"; }
[ "$(field Sum)" = "$hash" ] || { echo "azure-aci: $module $version has another hash than $hash" >&2; exit 1; }

mkdir -p "$out"
SECONDS=0
GOWORK=off go build -C "$(field Dir)" -mod=readonly -trimpath -ldflags '-s -w' -o "$out/new" ./cmd/virtual-kubelet
echo $version >"$out/version"
mv "$out/new" "$out/virtual-kubelet"
echo "azure-aci: virtual kubelet $version built in $SECONDS s ($(du -m "$out/virtual-kubelet" | cut -f1) MB)"
