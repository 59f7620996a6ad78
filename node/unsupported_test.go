// SPDX-License-Identifier: Apache-2.0

package node

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// declaring is the memory provider with a declaration.
type declaring struct {
	memory.Notifying
	declared capability.Declaration
}

func (d declaring) Capabilities() capability.Declaration { return d.declared }

// declares makes the provider declare d.
func declares(d capability.Declaration) func(*PodControllerConfig) {
	return func(cfg *PodControllerConfig) { cfg.Provider = declaring{cfg.Provider.(memory.Notifying), d} }
}

// demanding returns a pod that requests two features.
func demanding() *corev1.Pod {
	pod := bound("p", "1")
	pod.Spec.HostNetwork = true
	pod.Spec.Containers[0].TTY = true
	return pod
}

// TestSecurityF3UnsupportedPodWaitsAndSaysWhy: the backend never receives the pod, and one event names every unsupported field.
func TestSecurityF3UnsupportedPodWaitsAndSaysWhy(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(demanding())
		w.pass(time.Hour)
		const why = "this node cannot run the pod: spec.containers[0].tty: the backend has no InteractiveContainers; spec.hostNetwork: the backend has no HostNetwork"
		s := w.api.Pod("d", "p").Status
		if s.Phase != corev1.PodPending || s.Reason != "UnsupportedPodSpec" || s.Message != why {
			t.Errorf("status is %s %s %q, want Pending UnsupportedPodSpec %q", s.Phase, s.Reason, s.Message, why)
		}
		if len(s.ContainerStatuses) != 1 || s.ContainerStatuses[0].State.Waiting == nil || s.ContainerStatuses[0].State.Waiting.Reason != "UnsupportedPodSpec" {
			t.Errorf("containers are %+v, want one that waits for UnsupportedPodSpec", s.ContainerStatuses)
		}
		if events := w.events(); len(events) != 1 || events[0] != "Warning UnsupportedPodSpec "+why {
			t.Errorf("events are %q, want one with all fields", events)
		}
		wantCalls(t, b)
		w.wantWrites("d/p", "patch")
		w.api.Delete("d", "p", -1)
		w.pass(time.Second)
		w.wantPhase("p", "")
	}, declares(capability.Only()))
}

func TestUnsupportedPodFailsIfAsked(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.but = []string{"S8"} // the history does not contain the declaration
		w.start()
		w.api.Create(demanding())
		w.pass(time.Minute)
		if s := w.api.Pod("d", "p").Status; s.Phase != corev1.PodFailed || s.Reason != "UnsupportedPodSpec" || !strings.Contains(s.Message, "spec.containers[0].tty") {
			t.Errorf("status is %s %s %q, want Failed for the field tty", s.Phase, s.Reason, s.Message)
		}
		wantCalls(t, b)
	}, declares(capability.Only(capability.HostNetwork)), func(cfg *PodControllerConfig) { cfg.FailUnsupported = true })
}

// TestUnsupportedEphemeralContainerIsRefusedAlone: the pod continues.
func TestUnsupportedEphemeralContainerIsRefusedAlone(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "1"))
		w.pass(time.Minute)
		w.api.Change("d", "p", func(pod *corev1.Pod) {
			pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "busybox"}}}
		})
		w.pass(time.Minute)
		s := w.api.Pod("d", "p").Status
		if s.Phase != corev1.PodRunning || len(s.EphemeralContainerStatuses) != 1 || s.EphemeralContainerStatuses[0].State.Waiting == nil || s.EphemeralContainerStatuses[0].State.Waiting.Reason != "Unsupported" {
			t.Errorf("status is %+v, want Running with an ephemeral container that waits for Unsupported", s)
		}
		if got := b.Has("d/p"); got == nil || len(got.Spec.EphemeralContainers) != 0 {
			t.Errorf("the backend has %v, want the pod without ephemeral containers", got)
		}
	}, declares(capability.All().Lacks("", capability.EphemeralContainers)))
}
