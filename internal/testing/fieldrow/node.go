// SPDX-License-Identifier: Apache-2.0

package fieldrow

// node is issues and monitoring of a node in a cluster.
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
}
