// SPDX-License-Identifier: Apache-2.0

package admiralty

import (
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// side describes this source cluster for the shared tests of providers.
func (u *upper) side() remotetest.Side {
	return remotetest.Side{
		Home: u.Home, Worker: u.worker.Worker, Line: u.line, Cluster: u.home(), Namespace: u.home().NamespaceName, Other: "other",
		Start: func() (remotetest.Provider, func()) { return u.start() }, Lose: u.worker.Lose,
	}
}

// oneTarget returns a source cluster and a target cluster with an agent of Admiralty.
func oneTarget(t *testing.T, cluster string) remotetest.Side {
	t.Helper()
	w := startWorker(t, testapi.Start(t))
	startChaperons(t, w.API)
	return newUpper(t, w, cluster, "target-0").side()
}

func TestTwoSourcesShareOneTarget(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	startChaperons(t, w.API)
	remotetest.ShareOneCluster([]remotetest.Side{newUpper(t, w, "first", "target-0").side(), newUpper(t, w, "second", "target-0").side(), newUpper(t, w, "first", "target-1").side()})
}

func TestSameNameHundredTimes(t *testing.T) { oneTarget(t, "same-name").SameNameHundredTimes() }

func TestTokensOfHome(t *testing.T) { oneTarget(t, "tokens").TokensOfHome() }

func TestDarkTargetCluster(t *testing.T) { oneTarget(t, "dark").Dark() }

func TestNamespaceIsGone(t *testing.T) { oneTarget(t, "namespace").NamespaceIsGone() }
