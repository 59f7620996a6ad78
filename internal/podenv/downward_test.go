// SPDX-License-Identifier: Apache-2.0

package podenv

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

func TestFieldRef(t *testing.T) {
	addresses := func(p *corev1.Pod) {
		p.Status.PodIP, p.Status.PodIPs = "10.1.0.1", []corev1.PodIP{{IP: "10.1.0.1"}, {IP: "fd00::1"}}
		p.Status.HostIP, p.Status.HostIPs = "192.0.2.1", []corev1.HostIP{{IP: "192.0.2.1"}, {IP: "2001:db8::1"}}
		p.Status.Phase = corev1.PodPending
	}
	legacy := func(p *corev1.Pod) { p.Status.PodIP, p.Status.HostIP = "10.1.0.1", "192.0.2.1" }
	node := []corev1.HostIP{{IP: "192.0.2.7"}, {IP: "2001:db8::7"}}
	hostNetwork := func(p *corev1.Pod) { p.Spec.HostNetwork, p.Status.HostIP = true, "192.0.2.1" }
	for _, tt := range []struct {
		path string
		pod  func(*corev1.Pod)
		node []corev1.HostIP // the known addresses of the node
		want string          // "<-": the provider fills it
		bad  string          // the error names this
	}{
		{path: "metadata.name", want: "web-0"},
		{path: "metadata.namespace", want: "shop"},
		{path: "metadata.uid", want: "1-2-3"},
		{path: "metadata.labels", want: "a=\"say \\\"hi\\\"\"\napp=\"web\""},
		{path: "metadata.annotations", want: `example.com/Note="line1\nline2"`},
		{path: "metadata.labels['app']", want: "web"},
		{path: "metadata.labels['none']", want: ""},
		{path: "metadata.annotations['example.com/Note']", want: "line1\nline2"},
		{path: "spec.nodeName", want: "vk"},
		{path: "spec.host", want: "vk"},
		{path: "spec.serviceAccountName", want: "sa"},
		{path: "spec.restartPolicy", want: "Always"},
		{path: "spec.schedulerName", want: "default-scheduler"},
		{path: "status.phase", pod: addresses, want: "Pending"},
		{path: "status.podIP", pod: addresses, want: "10.1.0.1"},
		{path: "status.podIPs", pod: addresses, want: "10.1.0.1,fd00::1"},
		{path: "status.hostIP", pod: addresses, want: "192.0.2.1"},
		{path: "status.hostIPs", pod: addresses, want: "192.0.2.1,2001:db8::1"},
		{path: "status.podIPs", pod: legacy, want: "10.1.0.1"},
		{path: "status.hostIPs", pod: legacy, want: "192.0.2.1"},
		{path: "status.podIP", pod: hostNetwork, want: "192.0.2.1"},
		{path: "status.podIP", want: "<-"},
		{path: "status.podIPs", want: "<-"},
		{path: "status.hostIP", want: "<-"},
		{path: "status.hostIPs", want: "<-"},
		{path: "status.hostIP", node: node, want: "192.0.2.7"},
		{path: "status.hostIPs", node: node, want: "192.0.2.7,2001:db8::7"},
		{path: "status.hostIP", node: node, pod: addresses, want: "192.0.2.1"},
		{path: "status.hostIPs", node: node, pod: legacy, want: "192.0.2.1"},
		{path: "status.podIP", node: node, want: "<-"},
		{path: "status.podIPs", node: node, pod: func(p *corev1.Pod) { p.Spec.HostNetwork = true }, want: "192.0.2.7,2001:db8::7"},
		{path: "metadata.labels['']", bad: "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"},
		{path: "metadata.labels['a b']", bad: "a b"},
		{path: "metadata.name['x']", bad: "has no keys"},
		{path: "spec.containers", bad: `"spec.containers"`},
		{path: "", bad: "fieldPath"},
		{path: "['x']", bad: "fieldPath"},
	} {
		pod := podWith(corev1.Container{Env: []corev1.EnvVar{fieldRef("X", tt.path)}})
		if tt.pod != nil {
			tt.pod(pod)
		}
		err := Resolve(t.Context(), Config{HostIPs: func() []corev1.HostIP { return tt.node }}, pod)
		if tt.bad != "" {
			if !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), tt.bad) {
				t.Errorf("%s: error %v, want invalid input about %s", tt.path, err, tt.bad)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.path, err)
			continue
		}
		want := "X=" + tt.want + "\n"
		if tt.want == "<-" {
			want = "X<-" + tt.path + "\n"
		}
		if got := lines(pod.Spec.Containers[0].Env); got != want {
			t.Errorf("%s: %q, want %q", tt.path, got, want)
		}
	}

	other := podWith(corev1.Container{Env: []corev1.EnvVar{fieldRef("X", "metadata.name")}})
	other.Spec.Containers[0].Env[0].ValueFrom.FieldRef.APIVersion = "v2"
	if err := Resolve(t.Context(), Config{}, other); !errdefs.IsInvalidInput(err) {
		t.Errorf("apiVersion v2: %v, want invalid input", err)
	}
}

func TestResourceFieldRef(t *testing.T) {
	list := func(pairs ...string) corev1.ResourceList {
		out := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return out
	}
	allocatable := list("cpu", "4", "memory", "8Gi")
	for _, tt := range []struct {
		resource, divisor, container string
		limits, requests, podLimits  corev1.ResourceList
		noNode                       bool
		want                         string // "<-": the provider fills it
		bad                          bool
	}{
		{resource: "limits.cpu", limits: list("cpu", "1500m"), want: "2"},
		{resource: "limits.cpu", divisor: "1m", limits: list("cpu", "1500m"), want: "1500"},
		{resource: "limits.cpu", divisor: "0", limits: list("cpu", "1"), want: "1"},
		{resource: "limits.cpu", divisor: "1n", limits: list("cpu", "1m"), want: "1"},
		{resource: "limits.memory", limits: list("memory", "64Mi"), want: "67108864"},
		{resource: "limits.memory", divisor: "1Mi", limits: list("memory", "65M"), want: "62"},
		{resource: "limits.memory", divisor: "1Gi", limits: list("memory", "1"), want: "1"},
		{resource: "limits.memory", divisor: "1m", limits: list("memory", "5"), want: "5"},
		{resource: "requests.cpu", divisor: "1m", requests: list("cpu", "250m"), want: "250"},
		{resource: "requests.memory", divisor: "1Ki", requests: list("memory", "1Mi"), want: "1024"},
		{resource: "requests.ephemeral-storage", requests: list("ephemeral-storage", "1Gi"), want: "1073741824"},
		{resource: "requests.cpu", want: "0"},
		{resource: "limits.cpu", want: "4"},
		{resource: "limits.cpu", limits: list("cpu", "0"), want: "4"},
		{resource: "limits.memory", divisor: "1Gi", want: "8"},
		{resource: "limits.memory", divisor: "1Mi", podLimits: list("memory", "1Gi"), want: "1024"},
		{resource: "limits.memory", divisor: "1Mi", podLimits: list("memory", "1Gi"), noNode: true, want: "1024"},
		{resource: "limits.ephemeral-storage", podLimits: list("ephemeral-storage", "1Gi"), want: "<-"},
		{resource: "limits.cpu", noNode: true, want: "<-"},
		{resource: "limits.cpu", noNode: true, limits: list("cpu", "1"), want: "1"},
		{resource: "limits.hugepages-2Mi", divisor: "1Mi", limits: list("hugepages-2Mi", "4Mi"), want: "4"},
		{resource: "requests.hugepages-1Gi", requests: list("hugepages-1Gi", "1Gi"), want: "1073741824"},
		{resource: "limits.hugepages-2Mi", noNode: true, want: "0"},
		{resource: "limits.cpu", divisor: "1m", container: "init", want: "700"},
		{resource: "limits.cpu", container: "app", limits: list("cpu", "3"), want: "3"},
		{resource: "limits.memory", divisor: "1Gi", container: "init", want: "8"},
		{resource: "limits.cpu", container: "nobody", bad: true},
		{resource: "limits.nvidia.com/gpu", bad: true},
		{resource: "cpu", bad: true},
		{resource: "", bad: true},
		{resource: "usage.cpu", bad: true},
		{resource: "limits.cpu", divisor: "-1", limits: list("cpu", "1"), bad: true},
	} {
		ref := &corev1.ResourceFieldSelector{Resource: tt.resource, ContainerName: tt.container}
		if tt.divisor != "" {
			ref.Divisor = resource.MustParse(tt.divisor)
		}
		pod := podWith(corev1.Container{
			Env:       []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: ref}}},
			Resources: corev1.ResourceRequirements{Limits: tt.limits, Requests: tt.requests},
		})
		pod.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: corev1.ResourceRequirements{Limits: list("cpu", "700m")}}}
		if tt.podLimits != nil {
			pod.Spec.Resources = &corev1.ResourceRequirements{Limits: tt.podLimits}
		}
		cfg := Config{NodeAllocatable: func() corev1.ResourceList { return allocatable }}
		if tt.noNode {
			cfg.NodeAllocatable = nil
		}
		err := Resolve(t.Context(), cfg, pod)
		if tt.bad {
			if !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "spec.containers[0].env[0].valueFrom.resourceFieldRef") {
				t.Errorf("%+v: error %v, want invalid input", tt, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", tt, err)
			continue
		}
		want := "X=" + tt.want + "\n"
		if tt.want == "<-" {
			want = "X<-" + tt.resource + "\n"
		}
		if got := lines(pod.Spec.Containers[0].Env); got != want {
			t.Errorf("%+v: %q, want %q", tt, got, want)
		}
	}
}
