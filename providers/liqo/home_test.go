// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// home is a home cluster with one node, as a provider sees it.
type home struct {
	*remotetest.Home
	worker     *worker
	config     Config
	access     *rest.Config
	homeAccess *rest.Config // nil: the provider reads no NamespaceMap
	line       *remotetest.Line
	events     *record.FakeRecorder
}

func newHome(t *testing.T, w *worker, cluster, nodeName string) *home {
	u := &home{Home: remotetest.NewHome(t, nodeName), worker: w, config: w.config(t, cluster), line: &remotetest.Line{Creates: "shadowpods"}, events: record.NewFakeRecorder(1000)}
	u.access, u.config.refreshEvery = u.line.Through(w.API.Config), 200*time.Millisecond
	return u
}

// start runs the provider until stop is called, or the test ends.
func (u *home) start() (p *provider, stop func()) {
	u.Helper()
	in := u.Input()
	in.Recorder = u.events
	p, err := newProvider(in, u.config, u.access, u.homeAccess)
	if err != nil {
		u.Fatal(err)
	}
	return p, u.Run(p)
}

// remote returns the remote pod of a pod.
func (u *home) remote(pod *corev1.Pod) *corev1.Pod {
	u.Helper()
	got, err := u.worker.API.Client.CoreV1().Pods(u.config.Namespaces[pod.Namespace]).Get(u.Context(), u.identity().PodName(pod), metav1.GetOptions{})
	if err != nil {
		u.Fatal(err)
	}
	return got
}

func (u *home) identity() remotecluster.Home {
	return remotecluster.Home{Cluster: u.config.ClusterName, Node: u.Node}
}
