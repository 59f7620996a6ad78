// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/eci"
)

// send returns the request for a pod with a configuration, restricted to the fields with the given prefixes.
func send(t *testing.T, c Config, pod *corev1.Pod, begin ...string) (string, error) {
	t.Helper()
	r := resolved{&service.Inputs{Pod: pod, Containers: map[string]*corev1.Container{pod.Spec.Containers[0].Name: &pod.Spec.Containers[0]}}}
	m := testMapping()
	m.config = c
	request, err := m.group(r)
	if err != nil {
		return "", err
	}
	values := encode(request)
	values.Set("RegionId", c.Region)
	if err := eci.Check("CreateContainerGroup", values); err != nil {
		t.Errorf("ECI would refuse: %v", err)
	}
	var lines []string
	for name := range values {
		if slices.ContainsFunc(begin, func(b string) bool { return strings.HasPrefix(name, b) }) {
			lines = append(lines, name+"="+values.Get(name))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, " "), nil
}

// TestGPUsComeWithAnInstanceType checks that a pod with GPUs uses its own instance types or else those of the
// configuration, and is refused without any. The type decides the size.
func TestGPUsComeWithAnInstanceType(t *testing.T) {
	pod := func() *corev1.Pod {
		return testPod(corev1.PodSpec{Containers: []corev1.Container{{Name: "train", Image: "i", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")},
		}}}})
	}
	c := testMapping().config
	if _, err := send(t, c, pod()); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "spec.containers[0].resources.limits[nvidia.com/gpu]") {
		t.Errorf("no instance type: got %v", err)
	}
	c.GPUInstanceTypes = []string{"ecs.gn6i-c4g1.xlarge", "ecs.gn6i-c8g1.2xlarge"}
	own := pod()
	own.Annotations[annotationPrefix+"use-specs"] = "ecs.gn7i-c8g1.2xlarge"
	for want, pod := range map[string]*corev1.Pod{
		"Container.1.Gpu=2 InstanceType=ecs.gn6i-c4g1.xlarge,ecs.gn6i-c8g1.2xlarge": pod(), "Container.1.Gpu=2 InstanceType=ecs.gn7i-c8g1.2xlarge": own,
	} {
		if got, err := send(t, c, pod, "Container.1.Gpu", "InstanceType", "Cpu", "Memory"); err != nil || got != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	own.Annotations[annotationPrefix+"use-specs"] = "2-4Gi"
	if _, err := send(t, c, own); !errdefs.IsInvalidInput(err) {
		t.Errorf("a size without GPUs: got %v", err)
	}
	none := pod()
	none.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	if got, err := send(t, c, none, "InstanceType", "Container.1.Gpu"); err != nil || got != "" {
		t.Errorf("a pod without GPUs: got %s, %v", got, err)
	}
}

// TestImagesArePulledByARole checks the instances of Container Registry that the configuration names: a pod with
// images there pulls them by a role.
func TestImagesArePulledByARole(t *testing.T) {
	c := testMapping().config
	c.ACRInstances = []ACRInstance{
		{ID: "cri-1", Domains: []string{"registry.example.com"}}, {ID: "cri-2", Region: "cn-beijing", Domains: []string{"other.example.com"}, ServiceRole: "acs:ram::1:role/a", UserRole: "acs:ram::2:role/b"},
	}
	for image, want := range map[string]string{
		"busybox":                     "",
		"registry.example.com/team/a": "AcrRegistryInfo.1.Domain.1=registry.example.com AcrRegistryInfo.1.InstanceId=cri-1 AcrRegistryInfo.1.RegionId=cn-hangzhou",
		"other.example.com/team/a": "AcrRegistryInfo.1.ArnService=acs:ram::1:role/a AcrRegistryInfo.1.ArnUser=acs:ram::2:role/b AcrRegistryInfo.1.Domain.1=other.example.com " +
			"AcrRegistryInfo.1.InstanceId=cri-2 AcrRegistryInfo.1.RegionId=cn-beijing",
	} {
		got, err := send(t, c, testPod(corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: image}}}), "AcrRegistryInfo")
		if err != nil || got != want {
			t.Errorf("image %s: got %s, %v, want %s", image, got, err, want)
		}
	}
	c.ACRInstances = append(c.ACRInstances[:0:0], ACRInstance{ID: "cri-1", UserRole: "r"})
	c.GPUInstanceTypes = []string{"2-4Gi"}
	_, err := c.complete()
	for _, want := range []string{"acrInstances[0]", "gpuInstanceTypes: 2-4Gi"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the configuration: want %s, got %v", want, err)
		}
	}
}
