// SPDX-License-Identifier: Apache-2.0

package podruntime_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
)

// TestSecurityF3PowerOverTheMachineIsGivenWhenAsked: features with power over the host are refused by default.
func TestSecurityF3PowerOverTheMachineIsGivenWhenAsked(t *testing.T) {
	powers := []capability.Feature{capability.Privileged, capability.HostNetwork, capability.HostNamespaces, capability.UnmaskedProc, capability.HostPath}
	none := podruntime.Capabilities(podruntime.Config{})
	all := podruntime.Capabilities(podruntime.Config{Privileged: true, HostPaths: []string{"/"}})
	for _, f := range powers {
		if none.Has(f) {
			t.Errorf("%s is there by default", f)
		}
		if !all.Has(f) {
			t.Errorf("%s is not there although it is asked for", f)
		}
	}
	if !none.Has(capability.EmptyDir) || !none.Has(capability.Sidecars) {
		t.Error("emptyDir or sidecars are missing by default")
	}
}

func TestRuntimeBelowHasLess(t *testing.T) {
	d := podruntime.Capabilities(podruntime.Config{
		Lacks: map[capability.Feature]string{capability.HostPorts: "there is one network"},
		Notes: map[capability.Feature]string{capability.HostPorts: "not shown", capability.ContainerLimits: "memory only"},
	})
	if d.Has(capability.HostPorts) || !d.Has(capability.ContainerLimits) {
		t.Error("what the runtime lacks is there, or what it has is not")
	}
}

// TestSecurityF3PodsThatAskForPowerAreRefused has one such field at a time, in a container, an init container
// and a debug container.
func TestSecurityF3PodsThatAskForPowerAreRefused(t *testing.T) {
	yes, unmasked := true, corev1.UnmaskedProcMount
	privileged := &corev1.SecurityContext{Privileged: &yes}
	volume := func(source corev1.VolumeSource) corev1.PodSpec {
		return corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: source}}}
	}
	declared := podruntime.Capabilities(podruntime.Config{})
	for want, spec := range map[string]corev1.PodSpec{
		"spec.volumes[0]":          volume(corev1.VolumeSource{GitRepo: &corev1.GitRepoVolumeSource{Repository: "https://git.test/r"}}),
		"spec.volumes[0].hostPath": volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}),
		"spec.hostNetwork":         {HostNetwork: true},
		"spec.hostPID":             {HostPID: true},
		"spec.hostIPC":             {HostIPC: true},
		"spec.containers[0].securityContext.privileged":     {Containers: []corev1.Container{{SecurityContext: privileged}}},
		"spec.initContainers[0].securityContext.privileged": {InitContainers: []corev1.Container{{SecurityContext: privileged}}},
		"spec.ephemeralContainers[0].securityContext.privileged": {EphemeralContainers: []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{SecurityContext: privileged}},
		}},
		"spec.containers[0].securityContext.procMount": {Containers: []corev1.Container{{SecurityContext: &corev1.SecurityContext{ProcMount: &unmasked}}}},
	} {
		refused := declared.Check(&corev1.Pod{Spec: spec})
		if len(refused) != 1 || refused[0].Path != want {
			t.Errorf("refused is %v, want %s alone", refused, want)
		}
	}
}
