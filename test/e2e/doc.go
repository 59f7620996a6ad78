// SPDX-License-Identifier: Apache-2.0

// Package e2e is the end-to-end suite for providers, run against a cluster with their node.
//
// The suite creates pods bound to the node, and looks at them through the API server only: at their status and
// events, and at the node's own data on /pods, /runningpods/, /stats/summary and /metrics/resource.
//
//	func TestEndToEnd(t *testing.T) {
//		e2e.NewEndToEndTestSuite(e2e.EndToEndTestSuiteConfig{
//			Namespace: "default",
//			NodeName:  "my-node",
//		}).Run(t)
//	}
//
// The user in the kubeconfig needs create on pods, and get on nodes/proxy. Pods come with the image nginx and a
// toleration for every taint.
//
// Note: the suite reaches the node as kubectl does, through the nodes/proxy subresource. So the node may authenticate and authorize
// its callers, and no pod must replace it.
package e2e
