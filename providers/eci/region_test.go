// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1listers "k8s.io/client-go/listers/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/eci"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// lag is the delay of the emulator's lists.
const lag = 200 * time.Millisecond

// emulated is an ECI whose containers are goroutines.
type emulated struct {
	*eci.Server
	front *emulator.Front
	web   *httptest.Server
	cloud *inprocess.Cloud
}

// startRegion runs the emulator until ctx ends and close is called.
func startRegion(ctx context.Context) *emulated {
	e := &emulated{cloud: inprocess.New(ctx)}
	objects := &emulator.Objects{}
	runner := &shelled{inprocess.Open(e.cloud, inprocess.Objects{Secrets: secrets{objects}})}
	e.Server = &eci.Server{
		Gate:   eci.Gate{Keys: map[string]eci.Key{accessKey: {Secret: secretKey, Actions: policy}}},
		Region: "cn-hangzhou", VSwitches: []string{"vsw-1"}, SecurityGroups: []string{"sg-1"}, Fleet: emulator.NewFleet(runner, objects, lag),
	}
	runner.NotifyPods(ctx, e.Report)
	go func() { _ = runner.RunInBackground(ctx) }()
	e.front = emulator.NewFront(eci.Operation, e.Server)
	e.web = httptest.NewUnstartedServer(e.front)
	e.web.Config.ErrorLog = log.New(io.Discard, "", 0) // errors of connections that tests break
	e.web.StartTLS()
	return e
}

func (e *emulated) close() {
	e.web.CloseClientConnections()
	e.web.Close()
}

// secrets reads the files of groups. The name of each file begins with the name of its group.
type secrets struct{ objects *emulator.Objects }

func (s secrets) List(labels.Selector) ([]*corev1.Secret, error)     { return nil, nil }
func (s secrets) Secrets(string) corev1listers.SecretNamespaceLister { return s }
func (s secrets) Get(name string) (*corev1.Secret, error) {
	pod := &corev1.Pod{}
	pod.Name, _, _ = strings.Cut(name, ".")
	return s.objects.Secret(context.Background(), pod, name)
}

const accessKey, secretKey = "LTAI-test", "the-secret-key"

// config returns a configuration for this region.
func (e *emulated) config(cluster string) Config {
	return Config{
		Stats:  true,
		Region: e.Region, Endpoint: e.web.URL, AccessKeyID: config.Literal(accessKey), AccessKeySecret: config.Literal(secretKey),
		ExecProbeEvery: metav1.Duration{Duration: time.Second}, ClusterName: cluster, VSwitchIDs: []string{"vsw-1"}, SecurityGroupID: "sg-1",
		Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20"), corev1.ResourceMemory: resource.MustParse("100Gi"), corev1.ResourcePods: resource.MustParse("200")},
		busy:     50 * time.Millisecond, rest: 200 * time.Millisecond, idle: 500 * time.Millisecond, seenWithin: 5 * time.Second,
	}
}

// transport returns the transport for requests, which trusts the emulator.
func (e *emulated) transport() *http.Transport {
	roots := x509.NewCertPool()
	roots.AddCert(e.web.Certificate())
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 16}
}

// open makes a provider for a node.
func (e *emulated) open(env providertest.Env, conf Config) (node.PodLifecycleHandler, error) {
	conf, err := conf.complete()
	if err != nil {
		return nil, err
	}
	p, _ := newProvider(cli.ProviderInput{ProviderConfig: env.ProviderConfig, NodeName: env.Node.Name}, conf, e.transport())
	return p, nil
}

// group returns the ID of a pod's group.
func (e *emulated) group(pod *corev1.Pod) (string, error) {
	ids := e.Groups(identity.TagUID, string(pod.UID))
	if len(ids) != 1 {
		return "", fmt.Errorf("the pod has %d groups", len(ids))
	}
	return ids[0], nil
}

// backend returns a region for one check.
func backend(ctx context.Context, env providertest.Env) (*providertest.Backend, error) {
	e := startRegion(ctx)
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
		Open:     func(context.Context) (node.PodLifecycleHandler, error) { return e.open(env, e.config("home")) },
		Close:    func() error { e.close(); return nil },
		Left:     func() (map[string][]string, error) { return e.Left(), nil },
		Outage:   breaks(emulator.Fault{Answer: eci.Refuse(http.StatusServiceUnavailable, "ServiceUnavailable", "try later")}),
		Throttle: breaks(emulator.Fault{Answer: eci.Refuse(http.StatusBadRequest, "Throttling.User", "too many requests")}),
		LoseAnswer: func() {
			e.front.Break(emulator.Fault{Operations: []string{"CreateContainerGroup"}, Times: 1, Lose: true})
		},
		Instances: func(pod *corev1.Pod) (int, error) { return e.instances(pod), nil },
		Kill: func(pod *corev1.Pod, container string) error {
			id, err := e.group(pod)
			if err != nil {
				return err
			}
			return e.cloud.Kill(uid(e.Run(id)), container)
		},
		Lose: func(pod *corev1.Pod) error {
			id, err := e.group(pod)
			if err != nil {
				return err
			}
			e.Server.Lose(id)
			return e.cloud.Lose(uid(id))
		},
	}, nil
}
