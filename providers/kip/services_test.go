// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/ec2"
)

// aService returns a Service with a port for TCP.
func aService(name, ip string, change func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: types.UID(name), ResourceVersion: "1"}, Spec: corev1.ServiceSpec{
		ClusterIP: ip, ClusterIPs: []string{ip}, Ports: []corev1.ServicePort{{Name: "web", Port: 80, Protocol: corev1.ProtocolTCP}},
	}}
	if change != nil {
		change(s)
	}
	return s
}

// aSlice returns an EndpointSlice of a Service.
func aSlice(service, version string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "kube-system", Name: service + "-1", UID: types.UID(service + "-1"), ResourceVersion: version, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints,
		Ports: []discoveryv1.EndpointPort{{Name: new("web"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))}},
	}
}

func anEndpoint(ip string, c discoveryv1.EndpointConditions) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{ip}, Conditions: c, NodeName: new("of-" + ip)}
}

// TestServicesAsData: machines get cluster IPs of IPv4 with the endpoints that kube-proxy would choose.
func TestServicesAsData(t *testing.T) {
	ready, not := discoveryv1.EndpointConditions{}, discoveryv1.EndpointConditions{Ready: new(false)}
	ending := discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
	local := func(s *corev1.Service) {
		s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
	}
	for name, c := range map[string]struct {
		service *corev1.Service
		slices  []*discoveryv1.EndpointSlice
		want    string
	}{
		"ready endpoints":           {aService("s", "10.96.0.1", nil), []*discoveryv1.EndpointSlice{aSlice("s", "1", anEndpoint("10.0.0.2", ready), anEndpoint("10.0.0.1", ready), anEndpoint("10.0.0.3", not))}, "10.96.0.1:80 TCP [10.0.0.1:8080 10.0.0.2:8080] false"},
		"an endpoint in two slices": {aService("s", "10.96.0.1", nil), []*discoveryv1.EndpointSlice{aSlice("s", "1", anEndpoint("10.0.0.2", ready)), aSlice("s", "1", anEndpoint("10.0.0.2", ready))}, "10.96.0.1:80 TCP [10.0.0.2:8080] false"},
		"endpoints that end":        {aService("s", "10.96.0.1", nil), []*discoveryv1.EndpointSlice{aSlice("s", "1", anEndpoint("10.0.0.2", ending), anEndpoint("10.0.0.3", not))}, "10.96.0.1:80 TCP [10.0.0.2:8080] false"},
		"none":                      {aService("s", "10.96.0.1", nil), []*discoveryv1.EndpointSlice{aSlice("other", "1", anEndpoint("10.0.0.2", ready))}, "10.96.0.1:80 TCP [] false"},
		"local endpoints":           {aService("s", "10.96.0.1", local), []*discoveryv1.EndpointSlice{aSlice("s", "1", anEndpoint("10.0.0.1", ready), anEndpoint("10.0.0.2", ready))}, "10.96.0.1:80 TCP [10.0.0.2:8080] false"},
		"affinity":                  {aService("s", "10.96.0.1", func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }), nil, "10.96.0.1:80 TCP [] true"},
		"headless":                  {aService("s", corev1.ClusterIPNone, nil), nil, ""},
		"IPv6":                      {aService("s", "fd00::1", nil), nil, ""},
		"another proxy":             {aService("s", "10.96.0.1", func(s *corev1.Service) { s.Labels = map[string]string{proxyName: "x"} }), nil, ""},
		"SCTP":                      {aService("s", "10.96.0.1", func(s *corev1.Service) { s.Spec.Ports[0].Protocol = corev1.ProtocolSCTP }), nil, ""},
	} {
		got := ""
		for _, p := range servicesOf([]*corev1.Service{c.service}, c.slices, "of-10.0.0.2").Ports {
			got += fmt.Sprint(p.Service, " ", p.Protocol, " ", p.Endpoints, " ", p.Sticky)
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestMachineKnowsServicesBeforeItsPod: without EndpointSlices no pod gets a machine. A machine gets the Services before its pod, with the DNS server of
// the cluster, and each change while the pod runs.
func TestMachineKnowsServicesBeforeItsPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.QEMU, c.EC2, c.Services = nil, &ec2.Config{SubnetID: "subnet-1"}, true })
		_ = w.services.Add(aService("kube-dns", "10.96.0.10", nil))
		p := w.start(newAuthority(t), 0, false)
		pod := w.pod("one", nil)
		p.keep(3 * time.Minute)
		w.wants("without EndpointSlices", 0)
		all := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		_ = all.Add(aSlice("kube-dns", "1", anEndpoint("10.0.0.1", discoveryv1.EndpointConditions{})))
		(&provider{p.driver.kit, p.driver}).UseEndpointSlices(discoverylisters.NewEndpointSliceLister(all))
		p.keep(time.Minute)
		w.wants("with EndpointSlices", 0, pod)
		last := func() (n int, endpoints []netip.AddrPort, dns []string) {
			w.do(pod.UID, func(s *simulated) {
				n, dns = len(s.services), s.bundle.ClusterDNS
				if n > 0 && len(s.services[n-1].Ports) == 1 {
					endpoints = s.services[n-1].Ports[0].Endpoints
				}
			})
			return n, endpoints, dns
		}
		if n, endpoints, dns := last(); n != 1 || !slices.Equal(endpoints, []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:8080")}) || !slices.Equal(dns, []string{"10.96.0.10"}) {
			t.Errorf("the machine got Services %d times, the last time %v, and the DNS servers %v", n, endpoints, dns)
		}
		_ = all.Update(aSlice("kube-dns", "2", anEndpoint("10.0.0.2", discoveryv1.EndpointConditions{})))
		p.keep(time.Minute)
		if n, endpoints, _ := last(); n != 2 || !slices.Equal(endpoints, []netip.AddrPort{netip.MustParseAddrPort("10.0.0.2:8080")}) {
			t.Errorf("after a change the machine got Services %d times, the last time %v", n, endpoints)
		}
		_ = all.Update(aSlice("kube-dns", "3", anEndpoint("10.0.0.2", discoveryv1.EndpointConditions{})))
		p.keep(time.Minute)
		if n, _, _ := last(); n != 2 {
			t.Errorf("after a change that concerns no machine it got Services %d times", n)
		}
		w.do(pod.UID, func(s *simulated) { s.refuses = errors.New("nftables: no buffer space") })
		_ = all.Update(aSlice("kube-dns", "4", anEndpoint("10.0.0.3", discoveryv1.EndpointConditions{})))
		p.keep(2 * time.Minute)
		w.wants("while the machine takes no Services", 0, pod)
		w.do(pod.UID, func(s *simulated) { s.refuses = nil })
		p.keep(time.Minute)
		if n, endpoints, _ := last(); n != 3 || endpoints[0].Addr().String() != "10.0.0.3" {
			t.Errorf("after refusals the machine got Services %d times, the last time %v", n, endpoints)
		}
		w.finish(p)
	})
}

// TestMachineTooOldForServices: a machine that does not take Services gets no pod. The pod fails after the time limit for a start, and its status has the
// reason.
func TestMachineTooOldForServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.QEMU, c.EC2, c.Services = nil, &ec2.Config{SubnetID: "subnet-1"}, true })
		w.old = true
		p := w.open(newAuthority(t), 0, false)
		all := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		(&provider{p.driver.kit, p.driver}).UseEndpointSlices(discoverylisters.NewEndpointSliceLister(all))
		p.begin()
		pod := w.pod("one", nil)
		p.keep(w.config.StartWithin.Duration / 2)
		if s := w.status(pod); s.Phase == corev1.PodFailed {
			t.Errorf("the pod fails early: %s", s.Message)
		}
		p.keep(w.config.StartWithin.Duration)
		if s := w.status(pod); s.Phase != corev1.PodFailed || s.Reason != reasonStart || !strings.Contains(s.Message, "Services") {
			t.Errorf("got %s, %s, %s", s.Phase, s.Reason, s.Message)
		}
		w.finish(p)
	})
}

// TestPastOfAMachineFailsNoPod: a standby machine that rejects the Services, or that the node does not reach, fails no pod for that. The time limit begins
// with the pod, and counts rejections only.
func TestPastOfAMachineFailsNoPod(t *testing.T) {
	for name, far := range map[string]bool{"rejects": false, "not reached": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(c *Config) {
					c.QEMU, c.EC2, c.Services, c.Standby = nil, &ec2.Config{SubnetID: "subnet-1"}, true, []Standby{{Type: "small", Count: 1}}
				})
				p := w.open(newAuthority(t), 0, false)
				all := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
				(&provider{p.driver.kit, p.driver}).UseEndpointSlices(discoverylisters.NewEndpointSliceLister(all))
				p.begin()
				p.keep(time.Minute)
				set := func(bad bool) {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.old = bad && !far
					for _, s := range w.cells {
						s.silent = bad && far
						s.change()
					}
				}
				set(true)
				_ = w.services.Add(aService("kube-dns", "10.96.0.10", nil))
				p.keep(2 * w.config.StartWithin.Duration)
				pod := w.pod("one", nil)
				p.keep(w.config.StartWithin.Duration / 2)
				if s := w.status(pod); s.Phase == corev1.PodFailed {
					t.Errorf("the pod fails: %s", s.Message)
				}
				set(false)
				p.keep(2 * time.Minute)
				if s := w.status(pod); s.Phase != corev1.PodRunning {
					t.Errorf("got %s: %s", s.Phase, s.Message)
				}
				w.finish(p)
			})
		})
	}
}

// TestServicesNeedANetwork: machines of QEMU have no route to pods.
func TestServicesNeedANetwork(t *testing.T) {
	c := testConfig("home")
	c.Services = true
	if _, err := c.complete(); err == nil {
		t.Error("services: true is taken for QEMU")
	}
}

// TestGPUsOfAPodReachItsMachine: the agent learns which devices the pod's containers ask for. A pod that asks for more GPUs than any type has is refused.
func TestGPUsOfAPodReachItsMachine(t *testing.T) {
	gpu := func(name corev1.ResourceName, n string) *corev1.Pod {
		return aPod(corev1.ResourceList{name: resource.MustParse(n)}, nil)
	}
	c := manySizes()
	c.Types = append(c.Types, Type{Name: "gpus", CPU: resource.MustParse("8"), Memory: resource.MustParse("32Gi"), GPUs: 4, GPUResource: "example.com/gpu"})
	for pod, want := range map[*corev1.Pod]string{gpu("nvidia.com/gpu", "1"): "gpu nvidia.com/gpu", gpu("example.com/gpu", "3"): "gpus example.com/gpu", aPod(nil, nil): "c5.large nvidia.com/gpu"} {
		w, err := c.wishOf(pod)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := w.types[0].Name + " " + c.deviceKind(pod); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for _, pod := range []*corev1.Pod{gpu("nvidia.com/gpu", "2"), gpu("example.com/gpu", "5"), gpu("other.com/gpu", "1")} {
		if err := c.check(pod); err == nil {
			t.Errorf("a machine is found for %v", pod.Spec.Containers[0].Resources.Limits)
		}
	}
}
