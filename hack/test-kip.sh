#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs provider kip with machines of QEMU: the contract of providers, and a node that is killed at each step. It needs root, qemu-system-x86, and the image
# of `make cell-image`. It runs two machines at a time.
#
#   VK_KIP_ROUNDS=   number of kills; default: 20
#
# Usage: hack/test-kip.sh REPORT
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
report=$(realpath -m "${1:?usage: hack/test-kip.sh REPORT}")
export VK_REQUIRE_QEMU=1 VK_KIP_CONTRACT=1 VK_KIP_ROUNDS=${VK_KIP_ROUNDS:-20}
said=$(mktemp)
trap 'rm -f "$said"' EXIT
failed=0
(cd "$root/providers" && go test -count=1 -timeout 120m -parallel 2 -v -run '^Test(ContractOnMachines|NoOrphansOnMachines|EC2PodRunsOnAMachine)$' ./kip) >"$said" || failed=$?
grep -E '^--- |^ *--- FAIL|_test\.go:|run\.go:' "$said" | grep -v -e '--- SKIP' -e 'is not proven' || true
# boots_with_kvm tries the kernel of the image, as the driver does: an existing /dev/kvm may not work.
boots_with_kvm() {
  timeout 5 qemu-system-x86_64 -M q35 -accel kvm -m 128 -display none -serial null -no-reboot -kernel "$root/bin/cell/vmlinuz" -append panic=-1 2>/dev/null
}
# outcomes counts checks of the contract that ended so.
outcomes() { grep -cE "^ {4,}--- $1: TestContractOnMachines/[a-z-]+/" "$said" || true; }
{
  echo "# Provider kip on machines of QEMU"
  echo
  echo "\`make kip-contract\` writes this page: the tests of [provider kip](../../providers/kip/README.md) with machines of QEMU ($(qemu-system-x86_64 --version | sed -nE '1s/.*version ([0-9.]+).*/\1/p')) that boot the"
  echo "image of \`make cell-image\`, $(boots_with_kvm && echo with || echo without) KVM."
  echo
  echo "| Test | Result |"
  echo "|---|---|"
  sed -nE 's/^--- (PASS|FAIL): (Test[A-Za-z0-9]+) .*/| \2 | \1 |/p' "$said" | sort | sed -e 's/PASS/passes/' -e 's/FAIL/**fails**/'
  echo
  echo "Of the checks of the contract $(outcomes PASS) pass, $(outcomes FAIL) fail and $(outcomes SKIP) are skipped, as they ask for what is not declared or the harness cannot do."
  sed -nE 's/^ +--- FAIL: TestContractOnMachines\/([a-z-]+\/[a-z-]+) .*/- `\1` fails/p' "$said"
  echo
  echo "A node is killed with SIGKILL at a step of its work, and the next node runs the pod on one machine and deletes it:"
  echo
  sed -nE 's/^.*_test\.go:[0-9]+: (round [0-9]+: .*)/- \1/p' "$said" | sort -V
} >"$report"
exit "$failed"
