// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

func stays() program.Program { return remotetest.Stays() }

func withObjects(pod *corev1.Pod) *corev1.Pod { return remotetest.WithObjects(pod) }

// side describes this home cluster for the shared tests of providers.
func (u *home) side() remotetest.Side {
	return remotetest.Side{
		Home: u.Home, Worker: u.worker.Worker, Line: u.line, Cluster: u.identity(), Namespace: func(home string) string { return u.config.Namespaces[home] }, Other: "other",
		Start: func() (remotetest.Provider, func()) { return u.start() }, Lose: u.worker.Lose,
	}
}

func (u *home) refreshed(p *provider) { u.side().Refreshed(p) }

func (u *home) copies() int { return u.side().Copies() }

func TestRestartWritesNothing(t *testing.T) {
	u := newHome(t, startWorker(t, testapi.Start(t)), "restart", "vk-0")
	pod := u.side().RestartWritesNothing()
	u.Until("the label of the remote pod is changed", func() (bool, string) {
		got := u.remote(pod).Labels["app"]
		return got == "changed", got
	})
}

func TestTwoHomesShareOneCluster(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	remotetest.ShareOneCluster([]remotetest.Side{newHome(t, w, "first", "vk-0").side(), newHome(t, w, "second", "vk-0").side(), newHome(t, w, "first", "vk-1").side()})
}

func TestSameNameHundredTimes(t *testing.T) {
	newHome(t, startWorker(t, testapi.Start(t)), "same-name", "vk-0").side().SameNameHundredTimes()
}

func TestTokensOfHome(t *testing.T) {
	newHome(t, startWorker(t, testapi.Start(t)), "tokens", "vk-0").side().TokensOfHome()
}

func TestDarkRemoteCluster(t *testing.T) {
	newHome(t, startWorker(t, testapi.Start(t)), "dark", "vk-0").side().Dark()
}
