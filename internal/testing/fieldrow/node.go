// SPDX-License-Identifier: Apache-2.0

package fieldrow

// node is issues and monitoring of a node in a cluster.
var node = []Row{
	{
		ID: "B0", Source: "kubernetes/kubernetes: pkg/features/kube_features.go (NodeControllerLeaseCircuitBreaker, on since 1.37)",
		Expects: "a node without a process is not ready after the control plane's grace period, however the process ended",
		Ours:    "each write of a node's lease is a renewal, the last one and that of a standby too; a handover leaves the node ready", Since: "2026-11-28",
	},
}
