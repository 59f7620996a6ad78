// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"io"
	"os"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// TestMain silences the log lines of the Kubernetes libraries about outages that the tests make.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.New(nil))
	os.Exit(m.Run())
}

// home is a home cluster with one node, as a provider sees it.
type home struct {
	*remotetest.Home
	cloud  *cloud
	config Config
	line   *remotetest.Line
	skew   atomic.Int64 // the offset of the machine's clock, in nanoseconds
}

func newHome(t *testing.T, c *cloud, cluster string) *home {
	h := &home{Home: remotetest.NewHome(t, "vk-0"), cloud: c, config: c.config(cluster), line: &remotetest.Line{}}
	h.config.refreshEvery = 200 * time.Millisecond
	h.config.now = func() time.Time { return c.time().Add(time.Duration(h.skew.Load())) }
	return h
}

// start runs the provider until stop is called, or the test ends.
func (h *home) start() (p *provider, stop func()) {
	h.Helper()
	config, err := h.config.completeConfig()
	if err != nil {
		h.Fatal(err)
	}
	if err := h.cloud.prepare(h.Context(), config); err != nil {
		h.Fatal(err)
	}
	access, err := config.clientConfig()
	if err != nil {
		h.Fatal(err)
	}
	h.config = config
	p, err = newProvider(h.Input(), config, h.line.Through(access))
	if err != nil {
		h.Fatal(err)
	}
	return p, h.Run(p)
}

// remote returns the remote pod of a pod.
func (h *home) remote(pod *corev1.Pod) *corev1.Pod {
	h.Helper()
	name := remotecluster.Home{Cluster: h.config.ClusterName, Node: h.Node}.PodName(pod)
	got, err := h.cloud.worker.API.Client.CoreV1().Pods(h.config.Namespace).Get(h.Context(), name, metav1.GetOptions{})
	if err != nil {
		h.Fatal(err)
	}
	return got
}

func readAll(t *testing.T, r io.ReadCloser) string {
	t.Helper()
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
