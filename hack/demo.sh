# SPDX-License-Identifier: Apache-2.0
#
# What hack/up.sh and hack/down.sh share; sourced, not run.

root=$PWD
cluster=${CLUSTER:-vk-demo}
node=${NODE:-virtual-node}
provider=${PROVIDER:-process}
state=${XDG_CACHE_HOME:-$HOME/.cache}/virtual-kubelet/nodes/$cluster/$node
kubectl=("$root/bin/devcluster" kubectl --name "$cluster")

# node_runs tells whether the recorded process is still this virtual node.
node_runs() {
  [ -f "$state/pid" ] && tr '\0' ' ' 2>/dev/null <"/proc/$(cat "$state/pid")/cmdline" | grep -q -- "--nodename $node "
}

# emulator_runs tells whether the recorded process is still the emulator of this node.
emulator_runs() {
  [ -f "$state/emulator/pid" ] && tr '\0' ' ' 2>/dev/null <"/proc/$(cat "$state/emulator/pid")/cmdline" | grep -q -- "-dir $state/emulator "
}

# free_port prints a TCP port of the loopback interface that nobody listens on.
free_port() {
  local port
  for port in $(shuf -i 20000-29999 -n 50); do
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      echo "$port"
      return
    fi
  done
  echo "no free port found between 20000 and 29999" >&2
  return 1
}
