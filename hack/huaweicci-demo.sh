#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the emulator of CCI of the tests of provider huaweicci on this machine until it is stopped, in front of a cluster that it starts. Writes
# .cache/huaweicci-demo.yaml, the configuration of the provider.
# Usage: hack/huaweicci-demo.sh [CLUSTER]
set -euo pipefail

cd "$(dirname "$0")/.."
. hack/lower.sh "${1:-cci}" huaweicci

"${kubectl[@]}" label --overwrite node worker test-worker=worker >/dev/null # where the emulator has pods run
(cd providers && go test -c -o ../.cache/huaweicci-emulator ./huaweicci)
(
  cd providers/huaweicci
  VK_TEST_KUBECONFIG=$kubeconfig VK_CCI_DEMO=$settings VK_CCI_DEMO_WORKER=worker exec ../../.cache/huaweicci-emulator -test.run '^TestEmulator$' -test.timeout 0 >/dev/null
) &
until [ -s "$settings" ]; do # it writes that when it listens
  kill -0 $! || exit 1
  sleep 0.2
done
ready "The emulator of CCI" huaweicci
