#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Takes a program from the files of a release, when they are there, or else makes it.
# Usage: hack/released.sh OUTPUT COMMAND...
#
# The files are those of one release in the folder release/ (or RELEASE=), with its SHA256SUMS, by which they are checked.
set -euo pipefail

output=$1 name=$(basename "$1")
release=${RELEASE:-$(dirname "${BASH_SOURCE[0]}")/../release}
[ -e "$release/SHA256SUMS" ] || exec "${@:2}"

platform=$(go env GOOS)_$(go env GOARCH)
file=$(awk -v name="$name" -v platform="$platform" '$2 ~ "^" name "_[^_]*_" platform "$" { print $2 }' "$release/SHA256SUMS")
if [ -z "$file" ] || [ ! -e "$release/$file" ]; then
  echo "$name: the release in $release has none for $platform: it is built"
  exec "${@:2}"
fi
if ! (cd "$release" && grep -F "  $file" SHA256SUMS | sha256sum --check --status); then
  echo "$name: $release/$file is not what its SHA256SUMS says: download it again, or remove $release to build it" >&2
  exit 1
fi
mkdir -p "$(dirname "$output")"
install -m 0755 "$release/$file" "$output.new"
mv "$output.new" "$output"
echo "$name: $file of the release"
