// SPDX-License-Identifier: Apache-2.0

package nodeutil

import "slices"

// webSocketFeature tells API servers since 1.36 that the node accepts exec, attach and port-forward over WebSocket. Without it the API
// server translates them to SPDY.
const webSocketFeature = "ExtendWebSocketsToKubelet"

// declareStreams adds webSocketFeature to the declared features of the node, if its server has the routes of
// package api. Other routes may not know these protocols; a program that serves them can declare the feature in
// NodeSpec.
func declareStreams(cfg *NodeConfig) {
	declared := &cfg.NodeSpec.Status.DeclaredFeatures
	if cfg.mux == nil || slices.Contains(*declared, webSocketFeature) {
		return
	}
	*declared = append(slices.Clone(*declared), webSocketFeature)
	slices.Sort(*declared) // the API server requires a sorted list
}
