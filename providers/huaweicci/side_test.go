// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// side describes this home cluster for the shared tests of providers. All its pods are in one namespace of CCI.
func (h *home) side() remotetest.Side {
	return remotetest.Side{
		Home: h.Home, Worker: h.cloud.worker, Line: h.line, Cluster: remotecluster.Home{Cluster: h.config.ClusterName, Node: h.Node}, Other: "other",
		Namespace: func(string) string { return h.config.Namespace },
		Start:     func() (remotetest.Provider, func()) { return h.start() }, Lose: h.cloud.worker.Lose,
	}
}

// oneHome returns a home cluster with a CCI of its own.
func oneHome(t *testing.T, cluster string) remotetest.Side {
	t.Helper()
	return newHome(t, startCloud(t, remotetest.StartWorker(t, testapi.Start(t)), API20), cluster).side()
}

func TestTwoHomesShareOneAccount(t *testing.T) {
	c := startCloud(t, remotetest.StartWorker(t, testapi.Start(t)), API20)
	remotetest.ShareOneCluster([]remotetest.Side{newHome(t, c, "first").side(), newHome(t, c, "second").side()})
}

func TestRestartWritesNothing(t *testing.T) { oneHome(t, "restart").RestartWritesNothing() }

func TestSameNameHundredTimes(t *testing.T) { oneHome(t, "same-name").SameNameHundredTimes() }

func TestDarkCCI(t *testing.T) { oneHome(t, "dark").Dark() }

func TestNamespaceIsGone(t *testing.T) {
	t.Parallel()
	oneHome(t, "namespace").NamespaceIsGone()
}
