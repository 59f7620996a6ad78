#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds interLink's own API server and Slurm plugin of 2026, runs provider interlink on them, on a plugin of its SDK for Python, and interLink's test
# set for virtual nodes, and writes what came of them. It needs root and Slurm: apt-get install slurm-wlm munge.
#
# INTERLINK_SRC is a folder with clones of interLink, interlink-slurm-plugin, interlink-plugin-sdk and vk-test-set; those that it lacks are cloned.
# INTERLINK_PYTHON is a Python with fastapi, uvicorn, pydantic 2, kubernetes, pytest and jinja2; without it one is made with pip. Without any, the
# tests of Python are skipped.
# INTERLINK_FACTS=write writes the facts of the programs, which the double is compared with.
# Usage: hack/interlink-field.sh REPORT
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
report=$(realpath "${1:?usage: hack/interlink-field.sh REPORT}")
out=$root/bin/interlink-field
mkdir -p "$out"
sources=${INTERLINK_SRC:-$out/src}
mkdir -p "$sources"
version() { git -C "$sources/$1" describe --tags --always 2>/dev/null; }
for name in interLink interlink-slurm-plugin interlink-plugin-sdk vk-test-set; do
  [ -d "$sources/$name" ] || git clone -q "https://github.com/interlink-hq/$name" "$sources/$name"
done
export GOWORK=off
go build -C "$sources/interLink" -trimpath -ldflags '-s -w' -o "$out/interlink-api" ./cmd/interlink
go build -C "$sources/interlink-slurm-plugin" -trimpath -ldflags '-s -w' -o "$out/slurm-plugin" ./cmd
unset GOWORK
(cd "$root/cmd/virtual-kubelet" && go build -tags grpcnotrace -ldflags '-s -w' -o "$out/virtual-kubelet" .)
ln -sfn "$(realpath "$sources/interlink-plugin-sdk")" "$out/sdk"
ln -sfn "$(realpath "$sources/vk-test-set")" "$out/vk-test-set"
rm -f "$out/python"
python=${INTERLINK_PYTHON:-}
if [ -z "$python" ] && python3 -m venv "$out/venv" && "$out/venv/bin/pip" install -q fastapi uvicorn 'pydantic>=2.9' kubernetes pytest jinja2; then
  python=$out/venv/bin/python
fi
pythonVersion="none: its tests are skipped"
if [ -n "$python" ]; then
  echo "$python" >"$out/python"
  pythonVersion=$($python -c 'import platform, fastapi, pydantic; print(f"{platform.python_version()} with fastapi {fastapi.__version__} and pydantic {pydantic.VERSION}")')
fi
said=$(mktemp)
trap 'rm -f "$said"' EXIT
failed=0
export VK_INTERLINK_FIELD=$out VK_REQUIRE_TESTAPI=1 VK_REQUIRE_SLURM=1
[ "${INTERLINK_FACTS:-}" != write ] || export VK_INTERLINK_FIELD_WRITE=1
(cd "$root/providers" && go test -count=1 -timeout 90m -v -run "${INTERLINK_TESTS:-^TestField}" ./interlink) >"$said" || failed=$?
grep -E '^ *--- |_test\.go:|^panic|^FAIL' "$said" || true
{
  echo "# Provider interlink with the plugins of others"
  echo
  echo "\`make interlink-field\` writes this page: [provider interlink](../../providers/interlink/README.md) with interLink's own API server, its Slurm plugin on a real"
  echo "Slurm, and a plugin that is written with its SDK for Python. Containers of the Slurm plugin are commands on the node: there is no image."
  echo
  echo "| Program | Version |"
  echo "|---|---|"
  echo "| interLink | $(version interLink) |"
  echo "| interlink-slurm-plugin | $(version interlink-slurm-plugin) |"
  echo "| interlink-plugin-sdk | $(version interlink-plugin-sdk) |"
  echo "| vk-test-set | $(version vk-test-set) |"
  echo "| Slurm | $(PATH=$PATH:/usr/sbin slurmctld -V | cut -d' ' -f2) |"
  echo "| Python | $pythonVersion |"
  echo
  echo "| Test | Result |"
  echo "|---|---|"
  sed -nE 's/^ *--- (PASS|FAIL|SKIP): (TestField[A-Za-z0-9]+(\/[a-z]+)?) .*/| \2 | \1 |/p' "$said" | sort | sed -e 's/PASS/passes/' -e 's/FAIL/**fails**/' -e 's/SKIP/skipped/'
  if grep -q 'vk-test-set: |' "$said"; then
    echo
    echo "## interLink's test set for virtual nodes"
    echo
    echo "Provider interlink with the Slurm plugin. The images of the set are not there: containers have the programs and the files of this machine, so tests that"
    echo "look for a program of an image fail."
    echo
    echo "| Test | Result | Reason |"
    echo "|---|---|---|"
    sed -n 's/.*vk-test-set: |/|/p' "$said"
  fi
} >"$report"
exit "$failed"
