# SPDX-License-Identifier: Apache-2.0
#
# What the demos of providers share whose other cluster has more in it than pods; sourced with the name of the cluster and of the provider, not run.
# It starts the cluster with a node of provider process, and throws both away at the end. It is make that starts it, as nothing may be built yet.

lower=$1
settings=$PWD/.cache/$2-demo.yaml
kubectl=(bin/devcluster kubectl --name "$lower")

finish() {
  trap '' INT TERM
  [ -z "$(jobs -p)" ] || kill $(jobs -p) 2>/dev/null || true
  wait
  rm -f "$settings"
  CLUSTER=$lower NODE=worker PROVIDER=process hack/down.sh
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir -p .cache
rm -f "$settings"
CLUSTER=$lower NODE=worker PROVIDER=process PROVIDER_CONFIG='' FIRST_POD='' make --no-print-directory up | sed -u 's/^✓/✓ remote cluster:/'
kubeconfig=$(bin/devcluster kubeconfig --name "$lower")

# ready says what to do now, and waits for the end of what runs in the background.
ready() {
  cat <<TEXT
✓ $1 runs, with cluster $lower behind it, until you press Ctrl-C. Now, in another terminal:
  make up PROVIDER=$2 PROVIDER_CONFIG=.cache/$2-demo.yaml
TEXT
  wait -n
}
