// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1listers "k8s.io/client-go/listers/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec/shelltest"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/zun"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// emulated is Zun whose containers are goroutines.
type emulated struct {
	*zun.Server
	front *emulator.Front
	web   *httptest.Server // nil in a bubble
	bare  atomic.Bool      // images have no shell
	cloud *inprocess.Cloud
}

// newCloud returns the emulator, without a server.
func newCloud(ctx context.Context) *emulated {
	e := &emulated{cloud: inprocess.New(ctx)}
	objects := &emulator.Objects{}
	runner := &shelled{inprocess.Open(e.cloud, inprocess.Objects{Secrets: secrets{objects}}), &e.bare}
	e.Server = &zun.Server{
		Gate:  zun.Gate{Users: map[string]string{"user": "the-password"}, Applications: map[string]string{"app-1": "the-secret"}, Region: "RegionOne"},
		Fleet: emulator.NewFleet(runner, objects, 0), Context: ctx, Slow: 20 * time.Millisecond, Networks: []string{"pods"},
	}
	runner.NotifyPods(ctx, e.Report)
	go func() { _ = runner.RunInBackground(ctx) }()
	e.front = emulator.NewFront(zun.Operation, e.Server)
	return e
}

// startCloud runs the emulator until ctx ends and close is called.
func startCloud(ctx context.Context) *emulated {
	e := newCloud(ctx)
	e.web = httptest.NewUnstartedServer(e.front)
	e.web.Config.ErrorLog = log.New(io.Discard, "", 0) // errors of connections that tests break
	e.web.StartTLS()
	return e
}

func (e *emulated) close() {
	e.web.CloseClientConnections()
	e.web.Close()
}

// secrets reads the files of groups. The name of a file begins with the name of its group.
type secrets struct{ objects *emulator.Objects }

func (s secrets) List(labels.Selector) ([]*corev1.Secret, error)     { return nil, nil }
func (s secrets) Secrets(string) corev1listers.SecretNamespaceLister { return s }
func (s secrets) Get(name string) (*corev1.Secret, error) {
	pod := &corev1.Pod{}
	pod.Name, _, _ = strings.Cut(name, ".")
	return s.objects.Secret(context.Background(), pod, name)
}

// shelled simulates a shell in containers, unless they are bare.
type shelled struct {
	*inprocess.Provider
	bare *atomic.Bool
}

// RunInContainer implements nodeutil.Provider.
func (s *shelled) RunInContainer(ctx context.Context, namespace, pod, container string, cmd []string, attach api.AttachIO) error {
	run := func(command []string, attach api.AttachIO) error {
		return s.Provider.RunInContainer(ctx, namespace, pod, container, command, attach)
	}
	switch {
	case cmd[0] != "sh":
		return run(cmd, attach)
	case s.bare.Load():
		return errors.New("exec: \"sh\": executable file not found in $PATH")
	case strings.HasPrefix(cmd[2], "echo "):
		_, err := fmt.Fprintln(attach.Stdout(), strings.TrimPrefix(cmd[2], "echo "))
		return err
	}
	return shelltest.Run(cmd, attach, run)
}

// config returns a configuration for this cloud.
func (e *emulated) config() Config {
	base := "http://zun.test"
	if e.web != nil {
		base = e.web.URL
	}
	return Config{
		Identity:    Identity{AuthURL: base + "/identity/v3", Username: "user", Password: config.Literal("the-password"), ProjectName: "project"},
		ClusterName: "home", Networks: []string{"pods"}, EmptyDirGiB: 1, ReachesPods: true, StatusRequests: 60000,
		Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20"), corev1.ResourceMemory: resource.MustParse("100Gi"), corev1.ResourcePods: resource.MustParse("200")},
		busy:     50 * time.Millisecond, rest: 200 * time.Millisecond, idle: 500 * time.Millisecond, seenWithin: time.Second, earlierWithin: time.Nanosecond, startPause: 20 * time.Millisecond,
	}
}

// transport returns the transport of requests. In a bubble, it uses no network.
func (e *emulated) transport() http.RoundTripper {
	if e.web == nil {
		return remotetest.Direct{Handler: e.front}
	}
	if e.web.TLS == nil {
		return &http.Transport{}
	}
	roots := x509.NewCertPool()
	roots.AddCert(e.web.Certificate())
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 16}
}

// instances returns the number of running containers of a pod.
func (e *emulated) instances(pod *corev1.Pod) (n int) {
	_, runs := e.Containers(identity.TagUID, string(pod.UID))
	for _, id := range runs {
		n += e.cloud.Instances(types.UID(id))
	}
	return n
}

// container returns the ID of the container of a pod, and the ID of its run.
func (e *emulated) container(pod *corev1.Pod) (id, run string, err error) {
	ids, runs := e.Containers(identity.TagUID, string(pod.UID))
	if len(ids) != 1 || len(runs) == 0 {
		return "", "", fmt.Errorf("the pod has %d containers with %d runs", len(ids), len(runs))
	}
	return ids[0], runs[len(runs)-1], nil
}

// backend returns a cloud for one check.
func backend(ctx context.Context, env providertest.Env) (*providertest.Backend, error) {
	e := startCloud(ctx)
	e.front.Forget()
	breaks := func(f emulator.Fault) func(bool) {
		mend := func() {}
		return func(on bool) {
			mend()
			mend = func() {}
			if on {
				mend = e.front.Break(f)
			}
		}
	}
	return &providertest.Backend{
		Open: func(context.Context) (node.PodLifecycleHandler, error) {
			c, err := e.config().complete()
			if err != nil {
				return nil, err
			}
			p, _ := newProvider(cli.ProviderInput{ProviderConfig: env.ProviderConfig, NodeName: env.Node.Name}, c, e.transport())
			return p, nil
		},
		Close:    func() error { e.close(); return nil },
		Outage:   breaks(emulator.Fault{Answer: zun.Refuse(http.StatusServiceUnavailable, "unavailable", "try later")}),
		Throttle: breaks(emulator.Fault{Answer: zun.Refuse(http.StatusTooManyRequests, "too-many-requests", "too many requests")}),
		LoseAnswer: func() {
			e.front.Break(emulator.Fault{Operations: []string{"CreateContainer"}, Times: 1, Lose: true})
		},
		Left:      func() (map[string][]string, error) { return e.Left(), nil },
		Instances: func(pod *corev1.Pod) (int, error) { return e.instances(pod), nil },
		Kill: func(pod *corev1.Pod, _ string) error {
			_, run, err := e.container(pod)
			if err != nil {
				return err
			}
			return e.cloud.Kill(types.UID(run), "main")
		},
		Lose: func(pod *corev1.Pod) error {
			id, run, err := e.container(pod)
			if err != nil {
				return err
			}
			e.Server.Lose(id)
			return e.cloud.Lose(types.UID(run))
		},
	}, nil
}

// home is a cluster with one node, as a provider sees it, and its own cloud.
type home struct {
	*remotetest.Home
	cloud  *emulated
	config Config
	logins credentials
}

// credentials are the registry credentials of each pod with a pull secret.
type credentials []node.RegistryCredential

// PullCredentials implements node.PullCredentials.
func (l credentials) PullCredentials(context.Context, *corev1.Pod) ([]node.RegistryCredential, error) {
	return l, nil
}

// newHome returns a home whose cloud has a server.
func newHome(t *testing.T) *home {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	h := &home{Home: remotetest.NewHome(t, "vk-0"), cloud: startCloud(ctx)}
	t.Cleanup(func() { h.cloud.close(); cancel() })
	h.config = h.cloud.config()
	return h
}

// opened is a provider with its driver.
type opened struct {
	*service.Provider[instance]
	driver *driver
}

// open makes a provider without running it.
func (h *home) open() (p opened) {
	h.Helper()
	c, err := h.config.complete()
	if err != nil {
		h.Fatal(err)
	}
	next := h.cloud.transport()
	if t, ok := next.(*http.Transport); ok {
		h.Cleanup(t.CloseIdleConnections)
	}
	p.Provider, p.driver = newProvider(h.Input(), c, next)
	return p
}

// start runs a provider until stop is called, or the test ends.
func (h *home) start() (p opened, stop func()) {
	h.Helper()
	p = h.open()
	p.UsePullCredentials(h.logins)
	return p, h.Run(p)
}

func stays() program.Program { return program.Program{Print: []string{"begun"}, Stay: program.Forever} }
