#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Starts a cluster and a virtual node on this machine and runs a first pod. Run again, it starts what is missing.
#
#   CLUSTER=vk-demo    name of the cluster, see `bin/devcluster list`
#   NODE=virtual-node  name of the node
#   PROVIDER=process   provider of the node, see `bin/virtual-kubelet providers`; mock only simulates pods
set -euo pipefail

cd "$(dirname "$0")/.."
. hack/demo.sh

say() { printf '✓ %s\n' "$*"; }
fail() { printf '✗ %s\n' "$*" >&2; exit 1; }

if "$root/bin/devcluster" status --name "$cluster" >/dev/null 2>&1; then
  say "cluster $cluster runs already"
else
  "$root/bin/devcluster" up --name "$cluster" --detach
fi
kubeconfig=$("$root/bin/devcluster" kubeconfig --name "$cluster")
credentials=$(dirname "$kubeconfig")/nodes/$node
"$root/bin/devcluster" node-credentials "$node" --name "$cluster" >/dev/null
mkdir -p "$state"

# An image for the first pod, so that no registry is needed.
options=()
if [ "$provider" = process ]; then
  mkdir -p "$state/images"
  (
    cd providers
    CGO_ENABLED=0 go build -o "$state/demo" ./process/demo
    go run ./process/demo/pack -name demo -o "$state/images/demo.tar" "$state/demo" cat env exit hostname id ls sleep
  )
  cat >"$state/process.yaml" <<YAML
apiVersion: process.virtual-kubelet.io/v1alpha1
kind: ProcessProviderConfiguration
stateDir: $state/process
images: [$state/images]
YAML
  options=(--provider-config "$state/process.yaml")
fi

if node_runs; then
  say "virtual node $node runs already (pid $(cat "$state/pid"))"
else
  setsid "$root/bin/virtual-kubelet" \
    --kubeconfig "$credentials/kubeconfig" --nodename "$node" --provider "$provider" "${options[@]}" --disable-taint \
    --node-ip 127.0.0.1 --listen-address 127.0.0.1 --port "$(free_port)" \
    --tls-cert-file "$credentials/kubelet.crt" --tls-private-key-file "$credentials/kubelet.key" \
    --client-ca-file "$credentials/ca.crt" \
    </dev/null >"$state/log" 2>&1 &
  echo $! >"$state/pid"
fi

"${kubectl[@]}" wait --for=create --timeout=60s "node/$node" >/dev/null || fail "node $node was not registered; see $state/log"
"${kubectl[@]}" wait --for=condition=Ready --timeout=60s "node/$node" >/dev/null || fail "node $node is not ready; see $state/log"
say "virtual node $node is ready, with provider $provider"

pod=examples/first-pod.yaml
[ "$provider" != process ] || pod=examples/first-process.yaml
"${kubectl[@]}" apply -f "$pod" >/dev/null
"${kubectl[@]}" wait --for=condition=Ready --timeout=60s pod/first >/dev/null || fail "pod first does not become ready; see: ${kubectl[*]} describe pod first"
say "pod first is running"
echo
"${kubectl[@]}" get nodes,pods -o wide
echo
echo "Its log (kubectl logs first):"
"${kubectl[@]}" logs first --tail=5 | sed 's/^/  /'
cat <<TEXT

Go on:
  export KUBECONFIG=$kubeconfig
  alias kubectl='bin/devcluster kubectl --name $cluster'    # if you have no kubectl
  kubectl exec first -- hostname
  kubectl create deployment web --image=demo --replicas=3
  kubectl get pods --watch
Log of the virtual node: $state/log
Stop everything:
  make down
TEXT
