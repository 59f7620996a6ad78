#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests of provider nomad on the agent in bin/nomad, and writes what came of them. It needs root, unshare, iproute2, iptables, busybox, dockerd
# and the CNI plugins of Debian.
# Usage: hack/test-nomad.sh REPORT
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
report=$(realpath "${1:?usage: hack/test-nomad.sh REPORT}")
said=$(mktemp)
trap 'rm -f "$said"' EXIT
failed=0
(cd "$root/providers" && VK_REQUIRE_NOMAD=1 go test -count=1 -timeout 20m -v ./nomad) >"$said" || failed=$?
grep -E '^--- |^ *--- FAIL|_test\.go:|^ *run\.go:.*want|control groups' "$said" | grep -v -e '--- SKIP' -e 'is not proven' || true
# outcomes counts checks of the contract that ended so.
outcomes() { grep -cE "^ {4,}--- $1: TestContract/[a-z-]+/" "$said" || true; }
{
  echo "# Provider nomad on a real agent"
  echo
  echo "\`make nomad\` writes this page: the tests of [provider nomad](../../providers/nomad/README.md) on the agent of Nomad 1.10.0, built from its module, server and client in one"
  echo "process or in two, with the drivers exec, raw_exec and docker (dockerd of Debian), in namespaces of their own for network, mounts and processes."
  echo
  echo "| Test | Result |"
  echo "|---|---|"
  sed -nE 's/^--- (PASS|FAIL): (Test[A-Za-z]+) .*/| \2 | \1 |/p' "$said" | sort | sed -e 's/PASS/passes/' -e 's/FAIL/**fails**/'
  echo
  echo "Of the checks of the contract $(outcomes PASS) pass, $(outcomes FAIL) fail and $(outcomes SKIP) are skipped, as they ask for what is not declared or the harness cannot do."
} >"$report"
exit "$failed"
