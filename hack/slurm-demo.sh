#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the private Slurm of the tests of provider slurm on this machine until it is stopped: a controller and two nodes, as root. Writes
# .cache/slurm-demo.yaml, the configuration of the provider, and .cache/slurm-demo.conf, for the commands of Slurm.
# Usage: hack/slurm-demo.sh
set -euo pipefail

cd "$(dirname "$0")/.."
settings=$PWD/.cache/slurm-demo.yaml
conf=$PWD/.cache/slurm-demo.conf

finish() {
  trap '' INT TERM
  [ -z "$(jobs -p)" ] || kill $(jobs -p) 2>/dev/null || true
  wait
  rm -f "$settings" "$conf"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir -p .cache
rm -f "$settings" "$conf"
(cd providers && go test -c -o ../.cache/slurm-cluster ./slurm)
(
  cd providers/slurm
  VK_REQUIRE_SLURM=1 VK_SLURM_DEMO=$settings VK_SLURM_DEMO_CONF=$conf exec ../../.cache/slurm-cluster -test.run '^TestDemo$' -test.timeout 0 >../../.cache/slurm-demo.log
) &
until [ -s "$settings" ]; do # it writes that when all nodes are there
  kill -0 $! 2>/dev/null || {
    cat .cache/slurm-demo.log >&2
    exit 1
  }
  sleep 0.2
done
cat <<TEXT
✓ Slurm runs until you press Ctrl-C. Now, in another terminal:
  make up PROVIDER=slurm PROVIDER_CONFIG=.cache/slurm-demo.yaml
  SLURM_CONF=.cache/slurm-demo.conf squeue
TEXT
wait -n
