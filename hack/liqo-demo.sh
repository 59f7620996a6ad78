#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs Liqo's controllers on this machine until they are stopped, on a cluster that it starts, as if that was peered, without a network: it has the
# definitions of Liqo's kinds and the remote namespace of default. Writes .cache/liqo-demo.yaml, the configuration of provider liqo.
# Usage: hack/liqo-demo.sh [CLUSTER]
set -euo pipefail

cd "$(dirname "$0")/.."
if [ ! -x bin/liqo/liqo-controller-manager ]; then
  echo "liqo: building Liqo's controllers, which takes about five minutes, once"
  hack/build-liqo.sh
fi
. hack/lower.sh "${1:-foreign}" liqo

"${kubectl[@]}" apply --server-side -f bin/liqo/crds >/dev/null
"${kubectl[@]}" create namespace default-demo --dry-run=client -o yaml | "${kubectl[@]}" apply -f - >/dev/null
KUBECONFIG=$kubeconfig bin/liqo/liqo-controller-manager --networking-enabled=false --authentication-enabled=false --offloading-enabled=true \
  --cluster-id=foreign --default-limits-enforcement=None --metrics-address=127.0.0.1:0 --health-probe-address=127.0.0.1:0 >.cache/liqo-demo.log 2>&1 &
cat >"$settings" <<YAML
apiVersion: liqo.virtual-kubelet.io/v1alpha1
kind: LiqoProviderConfiguration
kubeconfig: $kubeconfig
clusterName: demo
foreignClusterID: foreign
namespaces: {default: default-demo}
capacity: {cpu: 4, memory: 4Gi, pods: 20}
YAML
ready "Liqo, whose log is .cache/liqo-demo.log," liqo
