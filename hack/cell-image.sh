#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes what a machine of provider kip boots: a kernel, and an archive with the agent, busybox and modules. The kernel and busybox are packages of
# Debian, unpacked into a folder and not installed; it needs apt-get and dpkg-deb.
#
#   CELL_PACKAGES=   folder with the packages that is kept; default: one that is removed
#
# Usage: hack/cell-image.sh [OUTPUT]     (default: bin/cell)
#
# One version of the packages and of this tree gives one image, bit by bit.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
output=$(realpath -m "${1:-$root/bin/cell}")
. "$root/hack/goenv.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
packages=${CELL_PACKAGES:-$work/packages}
mkdir -p "$packages" "$work/root" "$output"

download() {
  local kernel
  kernel=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-.*\)/\1/p')
  [ -n "$kernel" ] && (cd "$packages" && apt-get -q -o APT::Sandbox::User=root download "$kernel" busybox-static)
}

if ! ls "$packages"/linux-image-*.deb "$packages"/busybox-static*.deb >/dev/null 2>&1; then
  download || {
    apt-get -q update # the lists are not there, or older than the archive
    download
  } || {
    echo "cell-image: apt has no linux-image-cloud-amd64: it is a package of Debian" >&2
    exit 1
  }
fi
for deb in "$packages"/*.deb; do dpkg-deb -x "$deb" "$work/root"; done
cd "$root/providers"
# The agent is to be small: the tag leaves out a debug page of gRPC, and without inlining the agent is 9 % smaller.
GOOS=linux GOARCH=amd64 go build -tags grpcnotrace -buildvcs=false -gcflags=all=-l -ldflags "-s -w -buildid= -X main.buildVersion=${VERSION:-development}" -o "$work/vk-cell" ./kip/cmd/vk-cell
limit=$((20 * 1000 * 1000))
size=$(stat -c %s "$work/vk-cell")
if [ "$size" -gt "$limit" ]; then
  echo "cell-image: vk-cell has $size bytes, more than the $limit that an agent may have" >&2
  exit 1
fi
go run ./kip/cmd/cell-image -kernel "$work/root" -busybox "$work/root/bin/busybox" -agent "$work/vk-cell" -out "$output"
cp "$work/vk-cell" "$output/vk-cell"
ls "$packages" >"$output/packages"
echo "cell-image: $output has vmlinuz, initrd ($(du -m "$output/initrd" | cut -f1) MB) and vk-cell ($((size / 1000000)) MB)"
