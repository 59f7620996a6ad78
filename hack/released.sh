#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Takes a program from the files of a release, when they are there, or else makes it.
# Usage: hack/released.sh OUTPUT COMMAND...
#
# The files are those of one release in the folder release/ (or RELEASE=), with its SHA256SUMS, by which they are checked. RELEASE may be an http(s)
# URL of them; RELEASE_SHA256 is then the checksum of the SHA256SUMS there. If the URL does not answer, the program is made.
set -euo pipefail

output=$1 name=$(basename "$1")
release=${RELEASE:-$(dirname "${BASH_SOURCE[0]}")/../release}
without="remove $release"

# fetch copies a file of the URL $1 into the folder $2.
fetch() {
  [ -e "$2/$3" ] && return
  mkdir -p "$2"
  curl --fail --silent --show-error --location --connect-timeout 10 --retry 2 --output "$2/$3.part" "$1/$3" && mv "$2/$3.part" "$2/$3"
}

case $release in http://* | https://*)
  url=${release%/} without="unset RELEASE"
  [ -n "${RELEASE_SHA256:-}" ] || { echo "$name: $url: set RELEASE_SHA256 to the checksum of the SHA256SUMS there, or $without to build it" >&2; exit 1; }
  release=$(dirname "${BASH_SOURCE[0]}")/../.cache/release/$RELEASE_SHA256
  if ! fetch "$url" "$release" SHA256SUMS; then
    echo "$name: $url does not have the release: it is built"
    exec "${@:2}"
  fi
  if ! echo "$RELEASE_SHA256  $release/SHA256SUMS" | sha256sum --check --status; then
    rm "$release/SHA256SUMS"
    echo "$name: the SHA256SUMS of $url are not those of RELEASE_SHA256=$RELEASE_SHA256: correct it, or $without to build it" >&2
    exit 1
  fi
  ;;
esac
[ -e "$release/SHA256SUMS" ] || exec "${@:2}"

platform=$(go env GOOS)_$(go env GOARCH)
file=$(awk -v name="$name" -v platform="$platform" '$2 ~ "^" name "_[^_]*_" platform "$" { print $2 }' "$release/SHA256SUMS")
[ -z "$file" ] || [ -z "${url:-}" ] || fetch "$url" "$release" "$file" || true # it is built without it
if [ -z "$file" ] || [ ! -e "$release/$file" ]; then
  echo "$name: the release in $release has none for $platform: it is built"
  exec "${@:2}"
fi
if ! (cd "$release" && awk -v file="$file" '$2 == file' SHA256SUMS | sha256sum --check --status); then
  [ -z "${url:-}" ] || rm "$release/$file"
  echo "$name: ${url:-$release}/$file is not what its SHA256SUMS says: download it again, or $without to build it" >&2
  exit 1
fi
mkdir -p "$(dirname "$output")"
install -m 0755 "$release/$file" "$output.new"
mv "$output.new" "$output"
echo "$name: $file of the release"
