#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Starts a cluster and a virtual node on this machine and runs a first pod. Run again, it starts what is missing.
# Usage: hack/up.sh [PROGRAM...]     (files in bin/ that are made first, the program of the node among them)
#
#   CLUSTER=vk-demo    name of the cluster, see `bin/devcluster list`
#   NODE=virtual-node  name of the node
#   PROVIDER=process   provider of the node, see `bin/virtual-kubelet providers`; mock only simulates pods
#   PROVIDER_CONFIG=   configuration file of the provider
#   FIRST_POD=yes      empty: it runs no pod
#
# A provider for another cluster gets a second one on this machine, CLUSTER-lower, unless its settings name one. A provider for a cloud gets an
# emulator of it on this machine, without PROVIDER_CONFIG.
set -euo pipefail

cd "$(dirname "$0")/.."
. hack/demo.sh
. hack/goenv.sh

# How the commands are called that are about this node.
ours=
[ "$cluster" = vk-demo ] || ours+=" CLUSTER=$cluster"
[ "$node" = virtual-node ] || ours+=" NODE=$node"

say() { printf '✓ %s\n' "$*"; }
begun=0
steps=$(($# + 4))
step() {
  begun=$((begun + 1))
  printf '[%d/%d] %s\n' "$begun" "$steps" "$*"
}
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

program=bin/virtual-kubelet
for made in "$@"; do
  step "make $made"
  make --no-print-directory "$made"
  case $made in bin/virtual-kubelet | bin/virtual-kubelet-with-*) program=$made ;; esac
done

step "start the cluster $cluster"
lower=
settings=VKUBELET_${provider^^}
kubeconfig_setting=${settings}_KUBECONFIG
case $provider in tensilekube | admiralty)
  if [ -z "${PROVIDER_CONFIG:-}${!kubeconfig_setting:-}" ]; then
    lower=$cluster-lower
    CLUSTER=$lower NODE=worker PROVIDER=process FIRST_POD='' hack/up.sh | sed -un 's/^✓/✓ lower cluster:/p'
    export "$kubeconfig_setting=$("$root/bin/devcluster" kubeconfig --name "$lower")" "${settings}_CLUSTER_NAME=$cluster"
  fi
  ;;
esac

# The clouds that have an emulator, see providers/internal/emulate.
emulated=
case $provider in
  aci | azure) emulated=aci ;;
  azurebatch | batch) emulated=azurebatch ;;
  fargate | aws) emulated=fargate ;;
  zun | openstack) emulated=zun ;;
  eci | stackpath) emulated=$provider ;;
esac
[ -z "${PROVIDER_CONFIG:-}" ] || emulated=

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
[ -z "$lower" ] || echo "$lower" >"$state/lower"

# Workloads of StackPath have no files, so pods are to be made without the token that they have by default.
if [ "$provider" = stackpath ]; then
  "${kubectl[@]}" wait --for=create --timeout=60s serviceaccount/default >/dev/null
  "${kubectl[@]}" patch serviceaccount default -p '{"automountServiceAccountToken": false}' >/dev/null
fi

step "make an image for the first pod"
# It is made here, so that no registry is needed.
options=()
if [ "$provider" = process ] || [ -n "$emulated" ]; then
  make --no-print-directory bin/demo-image.tar
  mkdir -p "$state/images"
  cp bin/demo-image.tar "$state/images/.new" # the node may look at the folder meanwhile
  mv "$state/images/.new" "$state/images/demo.tar"
fi
if [ "$provider" = kip ] && [ -z "${PROVIDER_CONFIG:-}" ]; then
  command -v qemu-system-x86_64 >/dev/null || fail "machines are run by QEMU, which is not installed; on Debian
  apt-get install qemu-system-x86"
  [ -s "$root/bin/cell/initrd" ] || make -s cell-image
  cat >"$state/kip.yaml" <<YAML
apiVersion: kip.virtual-kubelet.io/v1alpha1
kind: KipProviderConfiguration
clusterName: $cluster
directory: $state/kip
image: $root/bin/cell
containers: programs
qemu: {}
types: [{name: small, cpu: 1, memory: 512Mi}]
YAML
  options=(--provider-config "$state/kip.yaml")
fi
if [ "$provider" = process ]; then
  cat >"$state/process.yaml" <<YAML
apiVersion: process.virtual-kubelet.io/v1alpha1
kind: ProcessProviderConfiguration
stateDir: $state/process
images: [$state/images]
YAML
  options=(--provider-config "$state/process.yaml")
fi
if [ -n "$emulated" ]; then
  emulator=$state/emulator
  if emulator_runs; then
    say "the emulator of $emulated runs already (pid $(cat "$emulator/pid"))"
  else
    make --no-print-directory bin/emulate
    mkdir -p "$emulator"
    rm -f "$emulator/provider.yaml"
    setsid "$root/bin/emulate" -service "$emulated" -dir "$emulator" -images "$state/images" </dev/null >"$emulator/log" 2>&1 &
    echo $! >"$emulator/pid"
    until [ -s "$emulator/provider.yaml" ]; do # it writes that when it listens
      kill -0 "$(cat "$emulator/pid")" 2>/dev/null || fail "the emulator of $emulated has ended. The end of its log, $emulator/log:
$(tail -n 3 "$emulator/log" | sed 's/^/    /')"
      sleep 0.2
    done
    say "an emulator of $emulated runs on this machine"
  fi
  options=(--provider-config "$emulator/provider.yaml")
  set -a
  . "$emulator/provider.env" # what its provider has from its environment
  set +a
fi
[ -z "${PROVIDER_CONFIG:-}" ] || options=(--provider-config "$(realpath "$PROVIDER_CONFIG")")

step "start the virtual node $node with provider $provider"
if node_runs; then
  [ "$(cat "$state/provider" 2>/dev/null)" = "$provider" ] || fail "virtual node $node runs already, with another provider; first: make down$ours"
  say "virtual node $node runs already (pid $(cat "$state/pid"))"
else
  setsid "$root/$program" \
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
  process://gvisor*) say "pods are isolated by gVisor: each has a kernel of its own" ;;
  process://runc* | process://crun*) say "pods are isolated by namespaces of the machine's kernel" ;;
  process://none*) say "pods are programs of this machine, without isolation" ;;
esac
case $("${kubectl[@]}" get node "$node" -o 'jsonpath={.status.conditions[?(@.type=="SharedNetwork")].status}') in
  False) say "each pod has a network of its own, in which it does not reach this machine" ;;
  True) say "pods are in the network of this machine" ;;
esac
! grep -q "limits of memory and CPU are not kept" "$state/log" || say "limits of memory and CPU are not kept: this user may not make cgroups"

[ -n "${FIRST_POD-yes}" ] || exit 0
step "run a first pod"

# The image that is made above is here, and in the other cluster if that is on this machine. Containers of Slurm, of Kip's
# machines here, and of the emulator of Azure Batch are programs of their machines.
pod=examples/first-pod.yaml more="kubectl apply -f $root/examples/workloads/deployment.yaml" shell="kubectl exec -it first -- sh"
patience=60s
[ "$provider" != kip ] || patience=300s # a machine boots, perhaps without KVM
if [ "$provider" = slurm ] || [ "$provider" = kip ] || [ "$emulated" = azurebatch ]; then
  more="kubectl create deployment web --image=none --replicas=3 -- sleep 1000" shell="kubectl exec first -- hostname"
elif [ "$provider" = process ] || [ -n "$lower$emulated" ] || [[ ${PROVIDER_CONFIG:-} = *-demo.yaml ]]; then
  pod=examples/first-process.yaml more="kubectl create deployment web --image=demo --replicas=3"
fi
"${kubectl[@]}" apply -f "$pod" >/dev/null
"${kubectl[@]}" wait --for=condition=Ready --timeout="$patience" pod/first >/dev/null 2>&1 || fail "pod first does not become ready: $("${kubectl[@]}" get pod first \
  -o 'jsonpath={.status.message}{range .status.containerStatuses[*]}{.state.waiting.reason} {.state.waiting.message}{end}')
  Its events: ${kubectl[*]} describe pod first
  Log of the virtual node: $state/log"
say "pod first is running"
echo
"${kubectl[@]}" get nodes,pods -o wide
echo
if [ -n "$lower" ]; then
  echo "The same pod in the lower cluster:"
  "$root/bin/devcluster" kubectl --name "$lower" get pods --all-namespaces -o wide
  echo
fi
echo "Its log (kubectl logs first):"
for _ in {1..60}; do # it is ready before it has said anything
  said=$("${kubectl[@]}" logs first --tail=5)
  [ -z "$said" ] || break
  sleep 0.5
done
sed 's/^/  /' <<<"$said"
if [ -n "$emulated" ]; then
  echo "A command in it (kubectl exec first -- hostname):"
  "${kubectl[@]}" exec first -- hostname | sed 's/^/  /'
fi
cat <<TEXT

Go on:
  export KUBECONFIG=$kubeconfig
  alias kubectl='$root/bin/devcluster kubectl --name $cluster'    # if you have no kubectl
  $shell
  $more
  kubectl get pods --watch
  make bin/virtual-kubelet    # the program with every provider, to try its commands, such as check and doctor
Log of the virtual node: $state/log
Stop everything:
  make down$ours
TEXT
