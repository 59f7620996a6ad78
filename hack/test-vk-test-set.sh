#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs vk-test-set of interLink, the tests of others for virtual nodes, on a cluster of this machine, and writes what came of them.
# It needs root and, on Debian, the packages git, busybox-static, python3-pytest, python3-kubernetes, python3-jinja2, python3-yaml and
# python3-pydantic; for slurm and interlink those of providers/slurm/README.md too, for nomad those of hack/test-nomad.sh and bin/nomad.
# Containers that are programs of the machine find python in /usr/bin with the package python-is-python3.
#
# interlink is provider interlink with interLink's own API server and Slurm plugin, see hack/build-interlink-field.sh.
#
#   VK_TEST_SET=DIR          a clone of vk-test-set; default: a new clone
#   VK_TEST_SET_IMAGES=pull  images come from their registries; default: an image of this machine's busybox, bash and python has all names
#   VK_TEST_SET_ONLY=100     runs the templates whose names have this text
#
# The report has the last run of each provider that this folder has seen.
# Usage: hack/test-vk-test-set.sh REPORT PROVIDER...    where PROVIDER is slurm, process, process-none, nomad or interlink
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
report=$(realpath "${1:?usage: hack/test-vk-test-set.sh REPORT PROVIDER...}")
shift
. hack/goenv.sh
work=$PWD/.cache/vk-test-set
set_of_tests=${VK_TEST_SET:-$work/source}
export NODE=vk-test-set FIRST_POD=
unset PYTHONUNBUFFERED # containers that are programs of the machine would have it
mkdir -p "$work/results"
[ -d "$set_of_tests" ] || git clone --quiet https://github.com/interlink-hq/vk-test-set "$set_of_tests"

# stop ends what runs for a provider.
stop() {
  [ -n "${CLUSTER:-}" ] || return 0
  [ -z "${watch:-}" ] || kill "$watch" 2>/dev/null || true
  hack/down.sh >/dev/null 2>&1 || true
  [ -z "${backend:-}" ] || { kill "$backend" 2>/dev/null && wait "$backend" || true; }
  watch='' backend=''
}
trap stop EXIT
trap 'exit 130' INT TERM

# root makes a directory of this machine's busybox, bash and python.
root() {
  local root=$work/root program library
  rm -rf "$root" && mkdir -p "$root/bin" "$root/usr/bin" "$root/usr/lib" "$root/tmp" "$root/etc"
  chmod 1777 "$root/tmp"
  cp "$(command -v busybox)" "$root/bin/busybox"
  for program in $(busybox --list | grep -vx busybox); do ln -s busybox "$root/bin/$program"; done
  for program in bash python3; do
    cp -L "/usr/bin/$program" "$root/usr/bin/$program"
    for library in $(ldd "/usr/bin/$program" | grep -o '/[^ ]*'); do install -D "$library" "$root$library"; done
  done
  ln -s python3 "$root/usr/bin/python"
  ln -sf ../usr/bin/bash "$root/bin/bash"
  cp -rL "$(/usr/bin/python3 -c 'import os; print(os.path.dirname(os.__file__))')" "$root/usr/lib/"
}

# image writes an image with the names of all that the templates run, and the files of root.
image() {
  root
  mkdir -p "$work/images"
  /usr/bin/python3 hack/vk-test-set.py image "$set_of_tests" "$work/root" "$work/images/all.tar"
}

# settings waits for the configuration that the process $backend writes when its backend runs.
settings() {
  export PROVIDER_CONFIG=$1
  until [ -s "$1" ]; do kill -0 "$backend"; sleep 0.5; done
}

# demo runs TestDemo of a provider, which writes its configuration and runs the backend until it is told to stop.
demo() {
  rm -f "$work/$1.yaml"
  (cd providers && go test -c -o "$work/$1.test" "./$1")
  (cd "providers/$1" && exec "$work/$1.test" -test.run '^TestDemo$' -test.timeout 0 >"$work/backend-$1.log" 2>&1) &
  backend=$!
  settings "$work/$1.yaml"
}

for provider in "$@"; do
  unset PROVIDER_CONFIG
  export PROVIDER=${provider%-none} CLUSTER=vk-test-set-$provider
  case $provider in
  slurm)
    rm -f .cache/slurm-demo.yaml
    hack/slurm-demo.sh >/dev/null &
    backend=$!
    settings .cache/slurm-demo.yaml
    ;;
  nomad)
    root
    VK_NOMAD_DEMO=$work/nomad.yaml VK_NOMAD_DEMO_ROOT=$work/root demo nomad
    ;;
  interlink)
    hack/build-interlink-field.sh
    VK_INTERLINK_FIELD=$PWD/bin/interlink-field VK_INTERLINK_DEMO=$work/interlink.yaml demo interlink
    ;;
  process | process-none)
    images=
    [ "${VK_TEST_SET_IMAGES:-}" = pull ] || { [ -s "$work/images/all.tar" ] || image; images=$work/images; }
    printf 'apiVersion: process.virtual-kubelet.io/v1alpha1\nkind: ProcessProviderConfiguration\nstateDir: %s\nimages: [%s]\nisolation: %s\n' \
      "$work/$provider" "$images" "$([ "$provider" = process ] && echo gvisor || echo none)" >"$work/$provider.yaml"
    export PROVIDER_CONFIG=$work/$provider.yaml
    ;;
  *) echo "provider $provider: want slurm, process, process-none, nomad or interlink" >&2; exit 2 ;;
  esac
  hack/up.sh >"$work/up-$provider.log" 2>&1 || { cat "$work/up-$provider.log" >&2; exit 1; }
  kubeconfig=$(bin/devcluster kubeconfig --name "$CLUSTER")
  # Without isolation there are no volumes, and so no tokens in pods.
  [ "$provider" != process-none ] || bin/devcluster kubectl --name "$CLUSTER" patch serviceaccount default -p '{"automountServiceAccountToken": false}' >/dev/null
  bin/devcluster kubectl --name "$CLUSTER" get pods --all-namespaces --watch -o json >"$work/pods-$provider.json" &
  watch=$!
  cat >"$work/vktest.yaml" <<YAML
target_nodes: [$NODE]
timeout_multiplier: 2
values:
  namespace: default
  annotations: {slurm-job.vk.io/flags: "--job-name=test-pod-cfg -t 2800", slurm-job.vk.io/image-root: "docker://"}
  tolerations: [{key: virtual-node.interlink/no-schedule, operator: Exists, effect: NoSchedule}]
YAML
  echo "vk-test-set on $provider"
  (cd "$set_of_tests" && KUBECONFIG=$kubeconfig VKTEST_CONFIG=$work/vktest.yaml PYTHONDONTWRITEBYTECODE=1 \
    /usr/bin/python3 -m pytest -q -p no:cacheprovider -k "test_manifest and ${VK_TEST_SET_ONLY:-yaml}" --junitxml="$work/$provider.xml" vktestset/basic_test.py) >"$work/$provider.log" 2>&1 || true
  kill "$watch" && wait "$watch" 2>/dev/null || true
  watch=''
  /usr/bin/python3 hack/vk-test-set.py results "$work/$provider.xml" "$work/pods-$provider.json" "$set_of_tests" >"$work/results/$provider.tsv"
  cut -f1,2 "$work/results/$provider.tsv"
  stop
  rm -rf "${work:?}/$provider"
done
/usr/bin/python3 hack/vk-test-set.py report "$work/results" "$(git -C "$set_of_tests" log -1 --format='%h of %cs')" "${VK_TEST_SET_IMAGES:-}" >"$report"
