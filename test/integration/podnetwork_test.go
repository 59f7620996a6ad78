// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestPodsReachTheirAPIServer: a program in a pod with the default network of provider process reads its own Pod object by client-go, with the
// token of its service account and by the address of the Service kubernetes. The API server is on the machine, which pods do not reach.
func TestPodsReachTheirAPIServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startProxied("--provider=process", "--provider-config="+w.processConfig("./inclusterpod"))
	w.api.Allow(t, "system:serviceaccount:"+w.namespace+":default", w.namespace, []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}})
	pod := w.pod("client")
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	pod.Spec.AutomountServiceAccountToken = nil
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].ImagePullPolicy = "inclusterpod", corev1.PullNever
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: field("metadata.name")}, {Name: "POD_NAMESPACE", ValueFrom: field("metadata.namespace")}}
	ran := w.startPod(pod)
	if address, err := netip.ParseAddr(ran.Status.PodIP); err != nil || ran.Status.PodIP == ran.Status.HostIP {
		t.Errorf("the pod has the address %s, and the node %s, %v", address, ran.Status.HostIP, err)
	}
	u := user{world: w, t: t}
	want := "UID " + string(ran.UID)
	late := time.After(patience)
	for said := u.kubectl("logs", pod.Name); !strings.Contains(said, want); said = u.kubectl("logs", pod.Name) {
		select {
		case <-late:
			t.Fatalf("the pod says %q, want %q", said, want)
		case <-time.After(50 * time.Millisecond):
		}
	}
	w.remove(pod.Name, metav1.DeleteOptions{})
	w.awaitGone(pod.Name, ran.UID)
}

// TestProbesReachPodsOnly: the node's probes reach a pod in its network. They do not reach a server of the host
// through a loopback address.
func TestProbesReachPodsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startProxied("--provider=process", "--provider-config="+w.processConfig())
	probed := func(name, host string) *corev1.Pod {
		pod := w.pod(name)
		pod.Spec.Containers[0].Image, pod.Spec.Containers[0].ImagePullPolicy = "nginx", corev1.PullNever
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PORT", Value: "8080"}}
		pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(8080), Host: host}}}
		return pod
	}
	created := []*corev1.Pod{w.create(probed("itself", "")), w.create(probed("machine", "127.0.0.1"))}
	w.awaitPod("itself", "is ready", isReady)
	events := query{client: w.client().CoreV1().RESTClient(), resource: "events", namespace: w.namespace}
	await(t, events, &corev1.Event{}, "the probe of the machine fails for its address", func(all []*corev1.Event) bool {
		return slices.ContainsFunc(all, func(e *corev1.Event) bool {
			return e.InvolvedObject.Name == "machine" && e.Reason == "Unhealthy" && strings.Contains(e.Message, "127.0.0.1 is an address of the machine")
		})
	})
	for _, pod := range created {
		w.remove(pod.Name, metav1.DeleteOptions{})
		w.awaitGone(pod.Name, pod.UID)
	}
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
