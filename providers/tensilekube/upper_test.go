// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// upper is an upper cluster with one node, as a provider sees it.
type upper struct {
	*remotetest.Home
	worker *worker
	config Config
	access *rest.Config
	user   string // the user with the rights of the README; "" for an administrator
	line   *remotetest.Line
	events recorded
}

func newUpper(t *testing.T, w *worker, cluster, nodeName string) *upper {
	u := &upper{Home: remotetest.NewHome(t, nodeName), worker: w, config: w.config(cluster), line: &remotetest.Line{}}
	u.access, u.config.refreshEvery = u.line.Through(w.API.Config), 200*time.Millisecond
	return u
}

// make makes the provider without running it.
func (u *upper) make() *provider {
	u.Helper()
	in := u.Input()
	in.Recorder = &u.events
	p, err := newProvider(in, u.config, u.access)
	if err != nil {
		u.Fatal(err)
	}
	return p
}

// start runs the provider until stop is called, or the test ends.
func (u *upper) start() (p *provider, stop func()) {
	u.Helper()
	p = u.make()
	return p, u.Run(p)
}

// remote returns the remote pod of a pod.
func (u *upper) remote(pod *corev1.Pod) *corev1.Pod {
	u.Helper()
	got, err := u.worker.API.Client.CoreV1().Pods(u.home().NamespaceName(pod.Namespace)).Get(u.Context(), u.home().PodName(pod), metav1.GetOptions{})
	if err != nil {
		u.Fatal(err)
	}
	return got
}

func (u *upper) home() remotecluster.Home {
	return remotecluster.Home{Cluster: u.config.ClusterName, Node: u.Node}
}
