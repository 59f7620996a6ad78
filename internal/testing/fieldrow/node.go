// SPDX-License-Identifier: Apache-2.0

package fieldrow

// node has issues and monitoring of a node in a cluster.
var node = []Row{
	{
		ID: "B0", Source: "kubernetes/kubernetes: pkg/features/kube_features.go (NodeControllerLeaseCircuitBreaker, on since 1.37)",
		Expects: "a node without a process is not ready after the control plane's grace period, however the process ended",
		Ours:    "each write of a node's lease is a renewal, the last one and that of a standby too; a handover leaves the node ready", Since: "2026-11-28",
	},
	{
		ID: "B1", Source: "tektoncd/pipeline: cmd/nop/README.md",
		Expects: "a container that is replaced runs again in the status, in pods that never restart too",
		Ours:    "the end of a container that is replaced is its last state; another instance is told from a late report by ID, restart count and start", Since: "2026-11-28",
	},
	{
		ID: "B2", Source: "virtual-kubelet/virtual-kubelet#20, admiraltyio/admiralty#114, kubernetes-sigs/azurefile-csi-driver#454 and #461",
		Expects: "DaemonSets of node agents, which tolerate every taint, roll out in a cluster with a virtual node",
		Ours:    "agents whose charts look at labels of virtual nodes keep away; `virtual-kubelet doctor` names the others, with the affinity or the label",
		Since:   "2026-11-28",
	},
	{
		ID: "B3", Source: "bitnami/charts: bitnami/common/templates/_resources.tpl; snakemake/snakemake-executor-plugin-kubernetes: pods with requests of ephemeral-storage",
		Expects: "pods that request ephemeral-storage are scheduled to the node",
		Ours:    "every provider offers it, which a check of the contract sees; the scheduler binds such a pod",
		Since:   "2026-11-28",
	},
	{
		ID: "B4", Source: "prometheus-operator/kube-prometheus: manifests/kubernetesControlPlane-serviceMonitorKubelet.yaml, its rules and dashboards; kubernetes-sigs/metrics-server 0.8.0",
		Expects: "each path of a kubelet that is scraped answers, with the series that rules and dashboards select",
		Ours:    "the paths answer with valid metrics; the series are there, or have a reason why not in the table of the test",
		Since:   "2026-11-28",
	},
}
