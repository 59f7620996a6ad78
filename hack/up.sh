#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Starts a cluster and a virtual node on this machine and runs a first pod. Run again, it starts what is missing.
#
#   CLUSTER=vk-demo    name of the cluster, see `bin/devcluster list`
#   NODE=virtual-node  name of the node
#   PROVIDER=process   provider of the node, see `bin/virtual-kubelet providers`; mock only simulates pods
#   PROVIDER_CONFIG=   configuration file of the provider
set -euo pipefail

cd "$(dirname "$0")/.."
. hack/demo.sh

# How the commands are called that are about this node.
ours=
[ "$cluster" = vk-demo ] || ours+=" CLUSTER=$cluster"
[ "$node" = virtual-node ] || ours+=" NODE=$node"

say() { printf '✓ %s\n' "$*"; }
fail() { printf '✗ %s\n' "$*" >&2; exit 1; }

# The provider cri needs a container runtime that listens, and may talk to it.
if [ "$provider" = cri ]; then
  sockets=(/run/containerd/containerd.sock /run/crio/crio.sock /run/cri-dockerd.sock)
  if [ -n "${PROVIDER_CONFIG:-}" ]; then
    named=$(sed -n 's|^endpoint: *"\?\(unix://\)\?\(/[^" ]*\).*|\2|p' "$PROVIDER_CONFIG")
    [ -z "$named" ] || sockets=("$named")
  fi
  for socket in "${sockets[@]}"; do [ ! -S "$socket" ] || break; done
  started="Install"
  ! command -v containerd >/dev/null || started="containerd is installed; start it, for example with systemctl start containerd. Else install"
  [ -S "$socket" ] || fail "no container runtime listens at ${sockets[*]}
  $started containerd, runc and network plugins, for example on Debian
    apt-get install containerd runc containernetworking-plugins iptables
  and configure a pod network in /etc/cni/net.d; or name the socket of another runtime as endpoint in the file PROVIDER_CONFIG.
  providers/cri/README.md says more."
  [ -w "$socket" ] || fail "$(id -un) may not use the container runtime at $socket; run this as root"
fi

if "$root/bin/devcluster" status --name "$cluster" >/dev/null 2>&1; then
  say "cluster $cluster runs already"
else
  # What it says after an empty line is for those who start it by hand.
  "$root/bin/devcluster" up --name "$cluster" --detach | sed -u '/^$/,$d'
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
    CGO_ENABLED=0 go build -C process/demo/shell -o "$state/sh" .
    go run ./process/demo/pack -name demo -sh "$state/sh" -o "$state/images/demo.tar" "$state/demo" cat env exit hostname id ls sleep tar
  )
  cat >"$state/process.yaml" <<YAML
apiVersion: process.virtual-kubelet.io/v1alpha1
kind: ProcessProviderConfiguration
stateDir: $state/process
images: [$state/images]
YAML
  options=(--provider-config "$state/process.yaml")
fi
[ -z "${PROVIDER_CONFIG:-}" ] || options=(--provider-config "$(realpath "$PROVIDER_CONFIG")")

if node_runs; then
  [ "$(cat "$state/provider" 2>/dev/null)" = "$provider" ] || fail "virtual node $node runs already, with another provider; first: make down$ours"
  say "virtual node $node runs already (pid $(cat "$state/pid"))"
else
  setsid "$root/bin/virtual-kubelet" \
    --kubeconfig "$credentials/kubeconfig" --nodename "$node" --provider "$provider" "${options[@]}" --disable-taint --drain-on-exit --drain-timeout 30s --drain-critical-timeout 5s \
    --node-ip 127.0.0.1 --listen-address 127.0.0.1 --port "$(free_port)" \
    --tls-cert-file "$credentials/kubelet.crt" --tls-private-key-file "$credentials/kubelet.key" \
    --client-ca-file "$credentials/ca.crt" \
    </dev/null >"$state/log" 2>&1 &
  echo $! >"$state/pid"
  echo "$provider" >"$state/provider"
fi

# await waits for a condition of the node for a minute, but not when its process has ended.
await() {
  for _ in {1..30}; do
    ! "${kubectl[@]}" wait --timeout=2s "$1" "node/$node" >/dev/null 2>&1 || return 0
    node_runs || break
  done
  local what="is not $2"
  node_runs || what="has ended"
  fail "virtual node $node $what. The end of its log, $state/log:
$(tail -n 3 "$state/log" | sed 's/^/    /')$(hint)"
}

# hint says what a user can do where no container can be made.
hint() {
  [ "$provider" = process ] && grep -q "no container can be made by" "$state/log" || return 0
  if [ "$(id -u)" != 0 ]; then
    printf '\n  The kernel, or a policy on top of it, may let %s make no user namespaces. Run this as root; or allow them, for example' "$(id -un)"
    printf '\n    sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0'
  fi
  printf '\n  Without containers: make up PROVIDER=mock'
}

await --for=create registered
await --for=condition=Ready ready
say "virtual node $node is ready, with provider $provider"
case $("${kubectl[@]}" get node "$node" -o 'jsonpath={.status.nodeInfo.containerRuntimeVersion}') in
  process://gvisor) say "pods are isolated by gVisor: each has a kernel of its own" ;;
  process://runc | process://crun) say "pods are isolated by namespaces of the machine's kernel" ;;
  process://none) say "pods are programs of this machine, without isolation" ;;
esac
! grep -q "limits of memory and CPU are not kept" "$state/log" || say "limits of memory and CPU are not kept: this user may not make cgroups"

pod=examples/first-pod.yaml
case $provider in process | tensilekube) pod=examples/first-process.yaml ;; esac # of the image that is made above, here or for the lower cluster
"${kubectl[@]}" apply -f "$pod" >/dev/null
"${kubectl[@]}" wait --for=condition=Ready --timeout=60s pod/first >/dev/null 2>&1 || fail "pod first does not become ready: $("${kubectl[@]}" get pod first \
  -o 'jsonpath={.status.message}{range .status.containerStatuses[*]}{.state.waiting.reason} {.state.waiting.message}{end}')
  Its events: ${kubectl[*]} describe pod first
  Log of the virtual node: $state/log"
say "pod first is running"
echo
"${kubectl[@]}" get nodes,pods -o wide
echo
echo "Its log (kubectl logs first):"
for _ in {1..60}; do # it is ready before it has said anything
  said=$("${kubectl[@]}" logs first --tail=5)
  [ -z "$said" ] || break
  sleep 0.5
done
sed 's/^/  /' <<<"$said"
more="kubectl create deployment web --image=demo --replicas=3"
[ "$provider" = process ] || more="kubectl apply -f $root/examples/workloads/deployment.yaml"
cat <<TEXT

Go on:
  export KUBECONFIG=$kubeconfig
  alias kubectl='$root/bin/devcluster kubectl --name $cluster'    # if you have no kubectl
  kubectl exec -it first -- sh
  $more
  kubectl get pods --watch
Log of the virtual node: $state/log
Stop everything:
  make down$ours
TEXT
