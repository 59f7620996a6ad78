// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// refused checks that the mapping refuses a pod with the path of a field.
func refused(t *testing.T, path string, change func(pod *corev1.Pod, c *corev1.Container)) {
	t.Helper()
	pod := testPod(corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "img"}}})
	pod.Annotations = map[string]string{}
	change(pod, &pod.Spec.Containers[0])
	m := testMapping()
	m.config.Annotations = known()
	if _, err := m.group(resolved{&service.Inputs{Pod: pod, Containers: map[string]*corev1.Container{"a": &pod.Spec.Containers[0]}}}); !errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), path+":") {
		t.Errorf("got %v, want an error of the kind invalid-input that begins with %s", err, path)
	}
}

// The following rules come from the page of CreateContainerGroup of 2026-06-22 and from the description of the
// API.

func TestPublishedC30VariablesOfECI(t *testing.T) {
	refused(t, "spec.containers[0].env[0]", func(_ *corev1.Pod, c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "discovery.type"}} })
	for _, path := range []string{"status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs"} {
		pod := testPod(corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "img", Env: []corev1.EnvVar{
			{Name: "HOST", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}},
		}}}})
		lines, err := form(t, pod, nil)
		if !slices.Contains(lines, "Container.1.EnvironmentVar.1.FieldRef.FieldPath=status.podIP") {
			t.Errorf("%s: got %v, %v, want the one source that ECI has", path, lines, err)
		}
	}
}

func TestPublishedC31CapabilitiesAndProbesOfECI(t *testing.T) {
	refused(t, "spec.containers[0].securityContext.capabilities.add[0]", func(_ *corev1.Pod, c *corev1.Container) {
		c.SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}}
	})
	pod := testPod(corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "img", ReadinessProbe: &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}, SuccessThreshold: 2,
	}}}})
	lines, err := form(t, pod, nil)
	if sent := slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "ReadinessProbe") }); err != nil || sent || lacking(&pod.Spec.Containers[0]).Readiness == nil {
		t.Errorf("got %v, %v, want a probe that this node does", lines, err)
	}
}

func TestPublishedC32SpotPricesAndTagsOfECI(t *testing.T) {
	annotate := func(name, value string) func(*corev1.Pod, *corev1.Container) {
		return func(pod *corev1.Pod, _ *corev1.Container) { pod.Annotations[annotationPrefix+name] = value }
	}
	at := "metadata.annotations[" + annotationPrefix
	refused(t, at+"spot-strategy]", annotate("spot-strategy", "SpotWithPriceLimit"))
	refused(t, at+"spot-price-limit]", annotate("spot-price-limit", "0.1234"))
	refused(t, at+"eip-bandwidth]", annotate("eip-bandwidth", "5"))
	refused(t, "metadata.name", func(pod *corev1.Pod, _ *corev1.Container) { pod.Name = strings.Repeat("x", 129) })
	refused(t, "spec.volumes", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.Volumes = make([]corev1.Volume, 21) })
}

func TestPublishedC33CodesOfECI(t *testing.T) {
	for code, want := range map[string]string{
		"InvalidParameter.CPU.Memory": "ends", "InvalidSpotCpuMemorySpec": "ends", "InstanceTypeNotMatchCpuArch": "ends", "InvalidInstanceTypeForEciBuy": "ends",
		"OperationDenied.NoStock": "waits", "Spot.NotMatched": "waits", "RecommendEmpty.InstanceTypeFamilyNotMatched": "waits", "InvalidVSwitchId.IpNotEnough": "waits",
		"QuotaExceeded": "waits", "Account.Arrearage": "neither", "NoPermission": "neither",
	} {
		err := errorOf("CreateContainerGroup", &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}}, []byte(`{"Code": "`+code+`"}`), time.Now())
		got := "neither"
		if after, _ := errdefs.RetryAfterOf(err); after > 0 {
			got = "waits"
		} else if errdefs.IsInvalidInput(err) {
			got = "ends"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", code, got, want)
		}
	}
}
