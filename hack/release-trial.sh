#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes a release in a clean clone of this repository, signed with a key of its own, tries each file of it, and writes what came of that. It needs root,
# and apt-get install containerd runc rpm openssl.
# Usage: VERSION=v1.2.3 hack/release-trial.sh REPORT     (PLATFORMS=linux/amd64: fewer than all)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
report=$(realpath "${1:?usage: hack/release-trial.sh REPORT}")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

git clone --quiet "$root" "$place/sources"
openssl genpkey -algorithm ed25519 -out "$place/key.pem"
openssl pkey -in "$place/key.pem" -pubout -out "$place/public.pem"
make --no-print-directory -C "$place/sources" release VERSION="${VERSION:-v1.2.3}" KEY="$place/key.pem" PLATFORMS="${PLATFORMS:-}"
cd "$place/sources/deploy"
VK_REQUIRE_PACKAGERS=1 go test -count=1 -timeout 20m -run '^TestReleaseTrial$' ./release -trial="$place/sources/dist" -trial-key="$place/public.pem" -trial-report="$report"
