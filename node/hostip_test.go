// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// reachedAt gives the node these internal IPs, and also a name and an external IP.
func reachedAt(ips ...string) func(*PodControllerConfig) {
	addresses := []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "n1"}, {Type: corev1.NodeExternalIP, Address: "198.51.100.1"}}
	for _, ip := range ips {
		addresses = append(addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	return func(cfg *PodControllerConfig) { cfg.NodeAddresses = func() []corev1.NodeAddress { return addresses } }
}

// wantsHostIPs returns a pod whose container asks for the host IPs.
func wantsHostIPs(name string) *corev1.Pod {
	pod := bound(name, "")
	for _, field := range []string{"status.hostIP", "status.hostIPs"} {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{
			Name: field, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: field}},
		})
	}
	return pod
}

// hostIPsGiven returns the variables that the backend received, "<-" for variables left to it.
func hostIPsGiven(b *memory.Backend, key string) (given []string) {
	for _, v := range b.Has(key).Spec.Containers[0].Env {
		if v.ValueFrom != nil {
			v.Value = "<-"
		}
		given = append(given, v.Value)
	}
	return given
}

// TestHostIPIsThatOfTheNode: if a provider reports no host IP, the node's IP is used, as with a kubelet.
func TestHostIPIsThatOfTheNode(t *testing.T) {
	for name, tt := range map[string]struct {
		node []string
		want string // value of hostIP; "<-": left to the provider
		all  string // value of hostIPs
	}{
		"one":               {[]string{"192.0.2.7"}, "192.0.2.7", "192.0.2.7"},
		"two families":      {[]string{"2001:db8::7", "192.0.2.7"}, "2001:db8::7", "2001:db8::7,192.0.2.7"},
		"two of a family":   {[]string{"192.0.2.7", "192.0.2.8", "2001:db8::7", "2001:db8::8"}, "192.0.2.7", "192.0.2.7,2001:db8::7"},
		"odd forms":         {[]string{"::ffff:192.0.2.7", "2001:DB8::0:7"}, "192.0.2.7", "192.0.2.7,2001:db8::7"},
		"what is no IP":     {[]string{"", "n1.example", "192.0.2.007", "192.0.2.7/24", "fe80::7%eth0", "192.0.2.7"}, "192.0.2.7", "192.0.2.7"},
		"no address at all": {nil, "<-", "<-"},
	} {
		t.Run(name, func(t *testing.T) {
			b := memory.New()
			inWorld(t, b, func(w *world) {
				w.start()
				w.api.Create(wantsHostIPs("p"))
				w.pass(time.Second)
				w.wantPhase("p", corev1.PodRunning)
				if got, want := hostIPsGiven(b, "d/p"), []string{tt.want, tt.all}; !slices.Equal(got, want) {
					t.Errorf("the backend was given %q, want %q", got, want)
				}
				var published string
				s := w.api.Pod("d", "p").Status
				for i, ip := range s.HostIPs {
					published += []string{"", ","}[min(i, 1)] + ip.IP
				}
				if published != tt.all && (published != "" || tt.all != "<-") || len(s.HostIPs) > 0 && s.HostIP != s.HostIPs[0].IP {
					t.Errorf("published are hostIP %q and hostIPs %q, want %q", s.HostIP, published, tt.all)
				}
			}, reachedAt(tt.node...))
		})
	}
}

// TestHostIPOfTheProviderCounts: the provider's host IP is used, and is kept if later reports omit it.
func TestHostIPOfTheProviderCounts(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", ""))
		w.pass(time.Second)
		for _, tt := range []struct {
			ip   string
			ips  []corev1.HostIP
			want string
		}{
			{want: "192.0.2.7"},
			{ip: "203.0.113.1", want: "203.0.113.1"},
			{want: "203.0.113.1"},
			{ips: []corev1.HostIP{{IP: "203.0.113.2"}, {IP: "2001:db8::2"}}, want: "203.0.113.2"},
			{want: "203.0.113.2"},
		} {
			b.Change("d/p", func(p *corev1.Pod) { p.Status.HostIP, p.Status.HostIPs = tt.ip, tt.ips })
			w.pass(2 * time.Second)
			if s := w.api.Pod("d", "p").Status; s.HostIP != tt.want || len(s.HostIPs) == 0 || s.HostIPs[0].IP != tt.want {
				t.Errorf("after a report of %q and %v: hostIP %q and hostIPs %v are published, want %s", tt.ip, tt.ips, s.HostIP, s.HostIPs, tt.want)
			}
		}
	}, reachedAt("192.0.2.7"))
}

// TestHostIPOfAPodStays: after a restart the node has another address. The containers still have the old address in their environment, so
// it remains published, and nothing is written.
func TestHostIPOfAPodStays(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(wantsHostIPs("p"))
		w.pass(time.Second)
		w.halt()
		writes := len(w.api.Writes("d/p"))
		w.configs = append(w.configs, reachedAt("192.0.2.9"))
		w.start()
		w.pass(time.Minute)
		if got := w.api.Pod("d", "p").Status.HostIP; got != "192.0.2.7" || len(w.api.Writes("d/p")) != writes {
			t.Errorf("hostIP is %s after %d more writes, want 192.0.2.7 as before", got, len(w.api.Writes("d/p"))-writes)
		}
	}, reachedAt("192.0.2.7"))
}
