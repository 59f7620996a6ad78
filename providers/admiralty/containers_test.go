// SPDX-License-Identifier: Apache-2.0

//go:build linux

package admiralty

import (
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// TestWorkloads runs common workloads with kubectl.
func TestWorkloads(t *testing.T) {
	api := testapi.Start(t)
	var w *remotetest.Worker
	remotetest.Workloads{
		Provider: "admiralty",
		Start: func(t *testing.T, images string) *remotetest.Worker {
			startChaperons(t, api)
			w = remotetest.StartContainers(t, api, images)
			return w
		},
		Config: func(_ *testing.T, cluster, _ string) string {
			return "apiVersion: " + APIVersion + "\nkind: " + Kind + "\nobject: " + ObjectPodChaperon + "\nkubeconfig: " + api.KubeconfigPath + "\nclusterName: " + cluster + "\n" + w.Settings()
		},
	}.Run(t)
}
