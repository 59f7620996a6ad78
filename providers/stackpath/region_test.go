// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/stackpath"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/sshexec"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// lag is the delay of the emulator's lists.
const lag = 200 * time.Millisecond

const clientSecret = "the-client-secret"

// emulated is StackPath whose containers are goroutines.
type emulated struct {
	*stackpath.Server
	front   *emulator.Front
	web     *httptest.Server
	console *stackpath.Console
	ssh     net.Listener
	cloud   *inprocess.Cloud
}

// newRegion returns the emulator, without servers.
func newRegion(ctx context.Context) *emulated {
	e := &emulated{cloud: inprocess.New(ctx)}
	runner := inprocess.Open(e.cloud, inprocess.Objects{})
	e.Server = &stackpath.Server{
		Stack: "stack-1", ClientID: "client-1", ClientSecret: clientSecret, Cities: []string{"ORD", "AMS"}, MostItems: 3, Fleet: emulator.NewFleet(runner, &emulator.Objects{}, lag),
	}
	e.Fleet.Linger = 5 * time.Second // a slow machine must also see how a container ended
	runner.NotifyPods(ctx, e.Report)
	go func() { _ = runner.RunInBackground(ctx) }()
	e.front = emulator.NewFront(stackpath.Operation, e.Server)
	return e
}

// startRegion runs the emulator until ctx ends and close is called.
func startRegion(ctx context.Context) (*emulated, error) {
	e := newRegion(ctx)
	e.web = httptest.NewUnstartedServer(e.front)
	e.web.Config.ErrorLog = log.New(io.Discard, "", 0) // errors of connections that tests break
	e.web.StartTLS()
	e.console = stackpath.NewConsole(e.Server)
	var err error
	if e.ssh, err = (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	go e.console.Serve(ctx, e.ssh)
	return e, nil
}

func (e *emulated) close() {
	e.ssh.Close()
	e.web.CloseClientConnections()
	e.web.Close()
}

// config returns a configuration for this region.
func (e *emulated) config(cluster string) Config {
	return Config{
		Endpoint: e.web.URL, StackID: e.Stack, ClientID: e.ClientID, ClientSecret: config.Literal(clientSecret), ClusterName: cluster, CityCode: "ord",
		Console: sshexec.Server{Address: e.ssh.Addr().String(), HostKey: e.console.HostKey()}, InstanceRequests: 6000,
		Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200"), corev1.ResourceMemory: resource.MustParse("400Gi"), corev1.ResourcePods: resource.MustParse("200")},
		busy:     50 * time.Millisecond, rest: 200 * time.Millisecond, idle: 500 * time.Millisecond, seenWithin: 5 * time.Second,
	}
}

// transport returns the transport of requests, with the authority of the emulator.
func (e *emulated) transport() *http.Transport {
	roots := x509.NewCertPool()
	roots.AddCert(e.web.Certificate())
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 16}
}

// one returns the ID of the workload of a pod.
func (e *emulated) one(pod *corev1.Pod) (string, error) {
	ids := e.Workloads(identity.TagUID, string(pod.UID))
	if len(ids) != 1 {
		return "", fmt.Errorf("the pod has %d workloads", len(ids))
	}
	return ids[0], nil
}

// backend returns a region for one check.
func backend(ctx context.Context, env providertest.Env) (*providertest.Backend, error) {
	e, err := startRegion(ctx)
	if err != nil {
		return nil, err
	}
	conf, err := e.config("home").complete()
	if err != nil {
		return nil, err
	}
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
			return newDriver(cli.ProviderInput{ProviderConfig: env.ProviderConfig, NodeName: env.Node.Name}, conf, e.transport()).kit, nil
		},
		Left:       func() (map[string][]string, error) { return e.Left(), nil },
		Close:      func() error { e.close(); return nil },
		Outage:     breaks(emulator.Fault{Answer: stackpath.Refuse(http.StatusServiceUnavailable, 14, "try later")}),
		Throttle:   breaks(emulator.Fault{Answer: stackpath.Refuse(http.StatusTooManyRequests, 8, "too many requests")}),
		LoseAnswer: func() { e.front.Break(emulator.Fault{Operations: []string{"CreateWorkload"}, Times: 1, Lose: true}) },
		Instances: func(pod *corev1.Pod) (n int, err error) {
			for _, id := range e.Workloads(identity.TagUID, string(pod.UID)) {
				n += e.cloud.Instances(types.UID(id))
			}
			return n, nil
		},
		Kill: func(pod *corev1.Pod, container string) error {
			id, err := e.one(pod)
			if err != nil {
				return err
			}
			return e.cloud.Kill(types.UID(id), container)
		},
		Lose: func(pod *corev1.Pod) error {
			id, err := e.one(pod)
			if err != nil {
				return err
			}
			e.Server.Lose(id)
			return e.cloud.Lose(types.UID(id))
		},
	}, nil
}
