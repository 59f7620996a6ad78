// SPDX-License-Identifier: Apache-2.0

package admiralty

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// upper is a source cluster with one node, as a provider sees it.
type upper struct {
	*remotetest.Home
	worker *worker
	config Config
	access *rest.Config
	line   *remotetest.Line
}

func newUpper(t *testing.T, w *worker, cluster, nodeName string) *upper {
	u := &upper{Home: remotetest.NewHome(t, nodeName), worker: w, config: w.config(cluster), line: &remotetest.Line{Creates: "podchaperons"}}
	u.access, u.config.refreshEvery = u.line.Through(w.API.Config), 200*time.Millisecond
	return u
}

// start runs the provider until stop is called, or the test ends.
func (u *upper) start() (p *provider, stop func()) {
	u.Helper()
	p, err := newProvider(u.Input(), u.config, u.access)
	if err != nil {
		u.Fatal(err)
	}
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
