#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fails when the binary is larger than users should have to download. Without the tag grpcnotrace it is twice as
# large, and so it is with a template of cobra: see what was imported with `go version -m` and `go tool nm -size -sort size`.
# Usage: hack/check-size.sh BINARY
set -euo pipefail

limit=$((68 * 1024 * 1024))
size=$(stat -c %s "$1")
if [ "$size" -gt "$limit" ]; then
  echo "$1 has $size bytes, more than the $limit that it may have" >&2
  exit 1
fi
