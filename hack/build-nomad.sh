#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the Nomad agent for the tests of provider nomad, into bin/nomad. It takes five to ten minutes, and is not part of CI.
#
# The agent's module replaces its own package api by a folder, which a module from the proxy doesn't hold, so it is copied and
# the replacement points at the published module. The hash is that of the checksum database. The program is for tests only.
set -euo pipefail

module=github.com/hashicorp/nomad
version=v1.10.0
hash=h1:Qkj6j9sez9SAuxjqi8Eu6k2gKN1Db60ULhHc4oRoY5s=
api=v0.0.0-20250930071859-eaa0fe0e27af

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=$root/bin/nomad
src=$root/.cache/nomad-$version
cd /
download=$(GOFLAGS=-mod=mod go mod download -json $module@$version)
field() { sed -n "s/^\t\"$1\": \"\(.*\)\",\?$/\1/p" <<<"$download"; }
[ "$(field Sum)" = "$hash" ] || { echo "nomad: $module $version has another hash than $hash: $(field Sum)" >&2; exit 1; }

mkdir -p "$out" "$root/.cache"
rm -rf "$src"
cp -r "$(field Dir)" "$src"
chmod -R u+w "$src"
trap 'rm -rf "$src"' EXIT
SECONDS=0
cd "$src"
export GOWORK=off CGO_ENABLED=1
go mod edit -replace "github.com/hashicorp/nomad/api=github.com/hashicorp/nomad/api@$api"
go build -mod=mod -trimpath -tags release -ldflags '-s -w' -o "$out/new" .
mv "$out/new" "$out/nomad"
echo "nomad: agent $version built in $SECONDS s ($(du -m "$out/nomad" | cut -f1) MB)"
