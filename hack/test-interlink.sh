#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests of provider interlink and of its plugin on interLink's own programs in bin/interlink, and writes what came of them, also of the
# contract. The containers of runc need root, and the jobs Slurm: apt-get install runc slurm-wlm munge.
# Usage: VERSION=... hack/test-interlink.sh REPORT
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
report=$(realpath "${1:?usage: hack/test-interlink.sh REPORT}")
said=$(mktemp)
trap 'rm -f "$said"' EXIT
failed=0
export VK_REQUIRE_INTERLINK=1 VK_REQUIRE_TESTAPI=1 VK_REQUIRE_SLURM=1 VK_CONTRACT_RESULTS="$root/docs/reports/contract" VK_CONTRACT_VERSION="${VERSION:?the version of what is tested}"
(cd "$root/providers" && go test -count=1 -timeout 20m -v -skip '^Test(Field|Demo)' ./interlink/...) >"$said" || failed=$?
grep -E '^--- |^ *--- FAIL|_test\.go:|^panic|^FAIL' "$said" | grep -v -e '--- SKIP' -e 'is not proven' || true
# outcomes counts checks of the contract on the real server that ended so.
outcomes() { grep -cE "^ {4,}--- $1: TestContractOnTheRealServer/[a-z-]+/" "$said" || true; }
{
  echo "# Provider interlink on interLink's own programs"
  echo
  echo "\`make interlink\` writes this page: the tests of [provider interlink](../../providers/interlink/README.md) and of its plugin with interLink's own API server, and"
  echo "interLink's own virtual kubelet in front of the plugin, built from its module of July 2025, $(cat "$root/bin/interlink/version")."
  echo
  echo "| Test | Result |"
  echo "|---|---|"
  sed -nE 's/^--- (PASS|FAIL|SKIP): (Test[A-Za-z0-9]+) .*/| \2 | \1 |/p' "$said" | sort | sed -e 's/PASS/passes/' -e 's/FAIL/**fails**/' -e 's/SKIP/skipped/'
  echo
  echo "From the end of a container that the plugin knows of to the report of its pod, through the real server, asked once a second:$(sed -n 's/.*report of its pod: \(p50.*\)/ \1/p' "$said") pods."
  echo
  echo "Of the checks of the contract on the real server $(outcomes PASS) pass, $(outcomes FAIL) fail and $(outcomes SKIP) are skipped, as they ask for what is not declared or the protocol does not have."
} >"$report"
exit "$failed"
