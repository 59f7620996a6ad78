#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs workloads through every provider for another cluster, or through those that are named, and writes what came of them. What came of the others
# is that of the last time, in .cache/workloads.
# Usage: hack/test-workloads.sh REPORT [PROVIDER...]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
report=$(realpath "${1:?usage: hack/test-workloads.sh REPORT}")
results=$root/.cache/workloads
providers=(tensilekube liqo admiralty huaweicci)
named=("${@:2}")
[ ${#named[@]} -gt 0 ] || named=("${providers[@]}")
mkdir -p "$results"
controllers="a controller of the tests"
if [ -x "$root/bin/liqo/liqo-controller-manager" ]; then # as make liqo builds it
  export VK_LIQO=$root/bin/liqo
  controllers="Liqo's own controllers, $(cat "$VK_LIQO/version")"
fi
failed=0
(cd "$results" && touch "${providers[@]}" && rm "${named[@]}" && touch "${named[@]}")
# Two at once: each has two clusters, and four on two slow cores are too late for kubectl's time limits.
(cd "$root/providers" && VK_REQUIRE_TESTAPI=1 VK_WORKLOADS=1 VK_WORKLOADS_RESULTS=$results go test -count=1 -timeout 40m -p 2 -run '^TestWorkloads$' "${named[@]/#/./}") || failed=$?
{
  cat <<TEXT
# Workloads in another cluster

\`make remote-workloads\` writes this page: what people run, with kubectl, through each provider whose pods are in another cluster. Home is a real API server,
scheduler and controller-manager, and its node is the built program with the provider. The remote cluster is another one of that kind, whose node is the built
program with provider process: its containers are real ones, by runc. Terminals are pseudo-terminals of the kernel.

Pods of liqo are made by $controllers, those of admiralty by a controller of the tests, and huaweicci has the emulator of its tests in front of
the remote cluster, which checks signatures and fields. What "refused" says is what users read.

TEXT
  (cd "$results" && awk -F'\t' -v order="${providers[*]}" '
    !seen[$1]++ { rows[++n] = $1 }
    { got[$1, FILENAME] = $2 }
    END {
      split(order, names, " ")
      line = "| |"; rule = "|---|"
      for (i = 1; i in names; i++) { line = line " [" names[i] "](../../providers/" names[i] "/README.md) |"; rule = rule "---|" }
      print line; print rule
      for (r = 1; r <= n; r++) {
        line = "| " rows[r] " |"
        for (i = 1; i in names; i++) line = line " " ((rows[r], names[i]) in got ? got[rows[r], names[i]] : "**not reached**") " |"
        print line
      }
    }' "${providers[@]}")
  cat <<'TEXT'

- The Deployment has a startup probe by TCP, a readiness probe by HTTP and a liveness probe by command, which restarts the container once.
- The token is one of ten minutes. The one in the container after the renewal, and the one before, are taken by the home API server as that of the pod and its
  service account, and not by the remote one.
- `kubectl exec -it` is a shell whose exit code comes back, and a program that is told of a terminal that is resized; `kubectl cp` copies 300 kB there and back.
TEXT
} >"$report"
exit "$failed"
