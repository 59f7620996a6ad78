// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e_test

import (
	"flag"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/test/e2e"
)

var (
	kubeconfig = flag.String("kubeconfig", "", "path of the kubeconfig file of the cluster (default $KUBECONFIG, then ~/.kube/config)")
	namespace  = flag.String("namespace", "default", "where to create pods")
	nodeName   = flag.String("node-name", "", "the node to test")
)

// TestEndToEnd runs the suite on an existing node:
//
//	go test -tags e2e ./test/e2e -node-name my-node
func TestEndToEnd(t *testing.T) {
	if *nodeName == "" {
		t.Fatal("name the node to test with -node-name")
	}
	e2e.NewEndToEndTestSuite(e2e.EndToEndTestSuiteConfig{
		Kubeconfig: *kubeconfig,
		Namespace:  *namespace,
		NodeName:   *nodeName,
	}).Run(t)
}
