// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestMain turns this program into the child of a test if childOf is set. It silences the log lines of the
// Kubernetes libraries about outages that the tests make.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.New(nil))
	if what, dir, is := strings.Cut(os.Getenv(childOf), ":"); is {
		if err := child(what, dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// home is a cluster with one node, whose pods go to an API server and from there to our plugin.
type home struct {
	*remotetest.Home
	dir, url   string
	cloud      *inprocess.Cloud
	stopServer func()
	stopPlugin func()
	line       *line
	config     Config
}

// newHome starts interLink's own API server if it is built, and otherwise a double.
func newHome(t *testing.T) *home {
	t.Helper()
	h := &home{Home: remotetest.NewHome(t, "vk-0"), dir: shortDir(t), cloud: inprocess.New(t.Context()), stopServer: func() {}}
	h.startPlugin()
	h.startServer()
	h.config = Config{URL: h.url, Features: ofRunner, StatusInterval: metav1.Duration{Duration: 200 * time.Millisecond}, earlier: time.Nanosecond} // our plugin repeats no answer
	return h
}

func (h *home) startPlugin() {
	h.Helper()
	_, h.stopPlugin = startPlugin(h.T, h.dir, goroutines(h.cloud), "")
}

func (h *home) startServer() {
	h.Helper()
	if _, err := os.Stat(realServer); err == nil {
		h.url, h.stopServer = startServer(h.T, h.dir, "unix://"+h.dir+"/plugin")
		return
	}
	h.url, h.stopServer = startDouble(h.T, h.dir, "unix://"+h.dir+"/plugin")
}

// start runs the provider until stop is called, or the test ends.
func (h *home) start() (p *provider, stop func()) {
	h.Helper()
	p, err := openProvider(h.Input(), h.config)
	if err != nil {
		h.Fatal(err)
	}
	h.line = through(p)
	stop = h.Run(p)
	ctx, cancel := context.WithTimeout(h.Context(), 2*time.Second)
	defer cancel()
	_ = p.Cache().Wait(ctx) // pods that are created from now on have no earlier process; a server without an answer is up to the test
	return p, stop
}

// stays is a program that runs until it is stopped.
func stays() program.Program { return program.Program{Stay: time.Hour} }

// withInit also has the init containers of pods.
type withInit struct{ node.PodObjects }

// Container implements node.PodObjects.
func (w withInit) Container(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			return pod.Spec.InitContainers[i].DeepCopy(), nil
		}
	}
	return w.PodObjects.Container(ctx, pod, name)
}

// provider is a provider with its driver.
type provider struct {
	*service.Provider[instance]
	driver *driver
	client *client
}

func openProvider(in cli.ProviderInput, config Config) (*provider, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	p, d, err := newProvider(in, config)
	if err != nil {
		return nil, err
	}
	return &provider{p, d, d.client}, nil
}

// get returns the pod with a UID, or nil.
func (p *provider) get(uid types.UID) *corev1.Pod {
	pod, _, _ := p.Cache().Get(uid)
	return pod
}
