// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// startThrough runs a complete node of the home cluster, with an access to the remote cluster, until stop is
// called, or the test ends.
func startThrough(t *testing.T, api *testapi.API, config Config, access *rest.Config, name string) (stop func()) {
	t.Helper()
	n, stop := remotetest.RunNode(t, api, name, func(in cli.ProviderInput) (remotetest.NodeProvider, error) {
		return newProvider(in, config, access, nil)
	})
	if err := n.WaitReady(t.Context(), remotetest.Patience); err != nil {
		t.Fatal(err)
	}
	return stop
}

func TestWholeNode(t *testing.T) {
	w, api := startWorker(t, testapi.Start(t)), testapi.New(t, testapi.Options{})
	whole := remotetest.Whole{T: t, API: api, Remote: w.API, Name: "home-node", Namespace: api.Namespace(t), Line: &remotetest.Line{}}
	config, access := w.placed(whole.Name, map[string]string{whole.Namespace: w.API.Namespace(t)}), whole.Line.Through(w.API.Config)
	whole.Start = func() (stop func()) { return startThrough(t, api, config, access, whole.Name) }
	whole.Run()
}
