#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests of provider interlink on interLink's own API server and Slurm plugin of 2026 and on a plugin of its SDK for Python, and writes what
# came of them. It needs root and Slurm: apt-get install slurm-wlm munge. hack/build-interlink-field.sh builds the programs, see there for
# INTERLINK_SRC and INTERLINK_PYTHON.
#
#   INTERLINK_CASES=DIR   has mockplugin.py, a stand-in of others for the API server with a plugin, and pods-mock.yaml, its pods
#   INTERLINK_FACTS=write writes the facts of the programs, which the double is compared with
# Usage: hack/interlink-field.sh REPORT
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
report=$(realpath "${1:?usage: hack/interlink-field.sh REPORT}")
. "$root/hack/goenv.sh"
"$root/hack/build-interlink-field.sh"
out=$root/bin/interlink-field
version() { git -C "$out/$1" describe --tags --always 2>/dev/null; }
pythonVersion="none: its tests are skipped"
if [ -s "$out/python" ]; then
  pythonVersion=$($(cat "$out/python") -c 'import platform, fastapi, pydantic; print(f"{platform.python_version()} with fastapi {fastapi.__version__} and pydantic {pydantic.VERSION}")')
fi
said=$(mktemp)
trap 'rm -f "$said"' EXIT
failed=0
export VK_INTERLINK_FIELD=$out VK_INTERLINK_CASES=${INTERLINK_CASES:+$(realpath "$INTERLINK_CASES")} VK_REQUIRE_TESTAPI=1 VK_REQUIRE_SLURM=1
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
  echo "| Slurm | $(PATH=$PATH:/usr/sbin slurmctld -V | cut -d' ' -f2) |"
  echo "| Python | $pythonVersion |"
  echo
  echo "| Test | Result |"
  echo "|---|---|"
  sed -nE 's/^ *--- (PASS|FAIL|SKIP): (TestField[A-Za-z0-9]+(\/[a-z0-9]+)?) .*/| \2 | \1 |/p' "$said" | sort | sed -e 's/PASS/passes/' -e 's/FAIL/**fails**/' -e 's/SKIP/skipped/'
  if grep -q 'stand-in: |' "$said"; then
    echo
    echo "## A stand-in of others"
    echo
    echo "A script of others stands for an API server with a plugin, with the answers of four published plugins. The pods of its file run, and are deleted when all of them do."
    echo
    echo "| Mode | Plugin | Pods that run | Gone after |"
    echo "|---|---|---|---|"
    sed -n 's/.*stand-in: |/|/p' "$said" | sort
  fi
  echo
  echo "[vk-test-set](vk-test-set.md) has interLink's test set for virtual nodes on provider interlink with the same API server and Slurm plugin."
} >"$report"
exit "$failed"
