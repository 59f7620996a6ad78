#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds interLink's own API server and virtual kubelet for the tests of provider interlink, into bin/interlink. It takes some minutes, and is not
# part of CI.
#
# The module cannot be a dependency, as its go.mod replaces modules. So it is downloaded and built where it is; the hash is that of go.sum.
set -euo pipefail

module=github.com/interlink-hq/interlink
version=v0.0.0-20250722085031-9ed14a4e89d5
hash=h1:qy3eStLghgukF9tVBgJeU8LI+SWAkynRZiKrwwCUbPU=

out=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/bin/interlink
cd /
download=$(GOFLAGS=-mod=mod go mod download -json $module@$version)
field() { sed -n "s/^\t\"$1\": \"\(.*\)\",\?$/\1/p" <<<"$download"; }
[ "$(field Sum)" = "$hash" ] || { echo "interlink: $module $version has another hash than $hash" >&2; exit 1; }

mkdir -p "$out"
SECONDS=0
for program in interlink virtual-kubelet; do
  GOWORK=off go build -C "$(field Dir)" -mod=readonly -trimpath -ldflags '-s -w' -o "$out/new" "./cmd/$program"
  mv "$out/new" "$out/${program/#interlink/interlink-api}"
done
echo $version >"$out/version"
echo "interlink: API server and virtual kubelet $version built in $SECONDS s ($(du -sm "$out" | cut -f1) MB)"
