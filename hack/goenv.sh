# SPDX-License-Identifier: Apache-2.0
#
# The flags of the Makefile, for scripts that are run by themselves: what several programs use is compiled once.
# Programs are for images without a C library, whatever calls this.
export GOFLAGS=${GOFLAGS:--trimpath} CGO_ENABLED=0

# Kubernetes' programs for tests are compiled without inlining, which takes a third less time. What an API server does for each object is mostly in
# packages that virtual-kubelet has too, and that are compiled as for it.
quick_kubernetes=()
for module in k8s.io/{kubernetes,kubectl,kube-aggregator,apiextensions-apiserver,kube-scheduler} sigs.k8s.io/kustomize go.etcd.io/etcd; do
  quick_kubernetes+=("-gcflags=$module/...=-l")
done
