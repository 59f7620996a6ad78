// SPDX-License-Identifier: Apache-2.0

package node

import "github.com/virtual-kubelet/virtual-kubelet/internal/metrics"

var (
	relistDuration = metrics.NewHistogram("kubelet_pleg_relist_duration_seconds", "Duration of a list of the pods of the backend.",
		0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60)
	relistInterval = metrics.NewHistogram("kubelet_pleg_relist_interval_seconds", "Time between two lists of the pods of the backend.",
		0.25, 0.5, 1, 2.5, 5, 10, 15, 20, 30, 60, 120)
)
