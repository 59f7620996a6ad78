#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests of provider liqo with Liqo's own controllers, from bin/liqo, and writes what came of them.
# Usage: hack/test-liqo.sh REPORT
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
report=$(realpath "${1:?usage: hack/test-liqo.sh REPORT}")
said=$(mktemp)
trap 'rm -f "$said"' EXIT
failed=0
(cd "$root/providers" && VK_REQUIRE_TESTAPI=1 VK_LIQO="$root/bin/liqo" go test -count=1 -timeout 30m -v ./liqo) >"$said" || failed=$?
grep -E '^--- |^ *--- FAIL|_test\.go:' "$said" | grep -v -e '--- SKIP' -e 'is not proven' || true
# outcomes counts checks of the contract that ended so.
outcomes() { grep -cE "^ {4,}--- $1: TestContract/[a-z-]+/" "$said" || true; }
{
  echo "# Provider liqo with Liqo's own controllers"
  echo
  echo "\`make liqo\` writes this page: the tests of [provider liqo](../../providers/liqo/README.md) on a real API server, scheduler and garbage collector, with liqo-controller-manager"
  echo "$(cat "$root/bin/liqo/version") and its definitions, without Liqo's network, authentication and webhooks. Containers are goroutines behind a real kubelet API."
  echo
  echo "| Test | Result |"
  echo "|---|---|"
  sed -nE 's/^--- (PASS|FAIL): (Test[A-Za-z]+) .*/| \2 | \1 |/p' "$said" | sort | sed -e 's/PASS/passes/' -e 's/FAIL/**fails**/'
  echo
  echo "Of the checks of the contract $(outcomes PASS) pass, $(outcomes FAIL) fail and $(outcomes SKIP) are skipped, as they ask for what goroutines do not have or the harness cannot do."
} >"$report"
exit "$failed"
