// SPDX-License-Identifier: Apache-2.0

//go:build linux

package liqo

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
		Provider: "liqo",
		Start: func(t *testing.T, images string) *remotetest.Worker {
			startShadows(t, api)
			w = remotetest.StartContainers(t, api, images)
			return w
		},
		Config: func(t *testing.T, cluster, namespace string) string {
			return "apiVersion: " + APIVersion + "\nkind: " + Kind + "\nkubeconfig: " + api.KubeconfigPath + "\nclusterName: " + cluster + "\nforeignClusterID: foreign\n" +
				"namespaces: {" + namespace + ": " + api.Namespace(t) + ", other: " + api.Namespace(t) + "}\n" + w.Settings()
		},
	}.Run(t)
}
