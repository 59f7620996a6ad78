#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds interLink's own API server and Slurm plugin of 2026 for hack/interlink-field.sh and hack/test-vk-test-set.sh, into bin/interlink-field.
#
#   INTERLINK_SRC=DIR      clones of interLink, interlink-slurm-plugin, interlink-plugin-sdk and vk-test-set; those that it lacks are cloned
#   INTERLINK_PYTHON=PATH  a Python with fastapi, uvicorn and pydantic 2; default: one that pip makes. Without any, the tests of Python are skipped
# Usage: hack/build-interlink-field.sh
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=$root/bin/interlink-field
mkdir -p "$out"
sources=${INTERLINK_SRC:-$out/src}
mkdir -p "$sources"
for name in interLink interlink-slurm-plugin interlink-plugin-sdk vk-test-set; do
  [ -d "$sources/$name" ] || git clone -q "https://github.com/interlink-hq/$name" "$sources/$name"
  ln -sfn "$(realpath "$sources/$name")" "$out/$name"
done
export GOWORK=off
go build -C "$sources/interLink" -trimpath -ldflags '-s -w' -o "$out/interlink-api" ./cmd/interlink
go build -C "$sources/interlink-slurm-plugin" -trimpath -ldflags '-s -w' -o "$out/slurm-plugin" ./cmd
rm -f "$out/python"
python=${INTERLINK_PYTHON:-}
if [ -z "$python" ] && python3 -m venv "$out/venv" && "$out/venv/bin/pip" install -q fastapi uvicorn 'pydantic>=2.9'; then
  python=$out/venv/bin/python
fi
[ -z "$python" ] || echo "$python" >"$out/python"
