// SPDX-License-Identifier: Apache-2.0

package node

import "github.com/virtual-kubelet/virtual-kubelet/internal/metrics"

var (
	nodeReady = metrics.NewGauge("virtual_kubelet_node_ready",
		"1 while the node is to be Ready, by the provider's Ping and the conditions that it reports, else 0.", metrics.Least, "node")
	nodeLeader = metrics.NewGauge("virtual_kubelet_node_leader",
		"1 while this process acts for the node, 0 while it stands by for another one.", metrics.Least, "node")
	pingFailures = metrics.NewCounter("virtual_kubelet_provider_ping_failures_total",
		"Pings of the provider that failed, panicked or timed out.")
	nodeRegistrations = metrics.NewCounter("virtual_kubelet_node_registrations_total",
		"Times the node object was created, at first or because it was deleted.")
	nodeWriteFailures = metrics.NewCounter("virtual_kubelet_node_write_failures_total",
		"Attempts to register or update the node object that failed.")
	leaseRenewFailures = metrics.NewCounter("virtual_kubelet_node_lease_renew_failures_total",
		"Attempts to renew the node lease that failed.")
)
