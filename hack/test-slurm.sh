#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests of provider slurm on Slurm of Debian, and writes what came of them, also of the contract. It needs root, and
# apt-get install slurm-client slurmctld slurmd munge slurmrestd slurm-wlm-jwt-plugin openssh-server podman busybox-static.
# Usage: VERSION=... hack/test-slurm.sh REPORT
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
report=$(realpath "${1:?usage: hack/test-slurm.sh REPORT}")
said=$(mktemp)
trap 'rm -f "$said"' EXIT
failed=0
export VK_REQUIRE_SLURM=1 VK_CONTRACT_RESULTS="$root/docs/reports/contract" VK_CONTRACT_VERSION="${VERSION:?the version of what is tested}"
(cd "$root/providers" && go test -count=1 -timeout 20m -v ./slurm/...) >"$said" || failed=$?
grep -E '^--- |^ *--- FAIL|_test\.go:|^panic|^FAIL' "$said" | grep -v -e '--- SKIP' -e 'is not proven' || true
# outcomes counts checks of the contract that ended so.
outcomes() { grep -cE "^ {4,}--- $1: TestContract/[a-z-]+/" "$said" || true; }
version() { dpkg-query --show --showformat='${Version}' "$1" 2>/dev/null || echo unknown; }
{
  echo "# Provider slurm on a real Slurm"
  echo
  echo "\`make slurm\` writes this page: the tests of [provider slurm](../../providers/slurm/README.md) on Slurm of Debian, $(version slurmctld): slurmctld, two slurmd on one machine,"
  echo "munge, slurmrestd, an SSH server on the way to the commands, and podman $(version podman). CI runs them too."
  echo
  echo "| Test | Result |"
  echo "|---|---|"
  sed -nE 's/^--- (PASS|FAIL|SKIP): ((Test|Fuzz)[A-Za-z0-9]+) .*/| \2 | \1 |/p' "$said" | grep -v TestDemo | sort | sed -e 's/PASS/passes/' -e 's/FAIL/**fails**/' -e 's/SKIP/skipped/'
  echo
  echo "Of the checks of the contract $(outcomes PASS) pass, $(outcomes FAIL) fail and $(outcomes SKIP) are skipped, as they ask for what is not declared or the harness cannot do."
} >"$report"
exit "$failed"
