// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/test/e2e"
)

// TestEndToEndSuite runs the suite for providers against the provider mock.
func TestEndToEndSuite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startProxied()
	e2e.NewEndToEndTestSuite(e2e.EndToEndTestSuiteConfig{
		Kubeconfig: w.api.KubeconfigPath,
		Namespace:  w.namespace,
		NodeName:   w.nodeName,
	}).Run(t)
}
