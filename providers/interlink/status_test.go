// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// TestStates covers every state that a plugin can report, in each kind of container.
func TestStates(t *testing.T) {
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "Queued"}}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Unix(100, 0)}}
	end := func(code int32, reason string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}
	}
	main := func(s corev1.ContainerState) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: "main", State: s}}
	}
	fetch := func(s corev1.ContainerState) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: "fetch", State: s}}
	}
	for name, tt := range map[string]struct {
		policy     corev1.RestartPolicy
		init, main []corev1.ContainerStatus
		phase      corev1.PodPhase
		code       *int32
	}{
		"no containers are told of":         {phase: corev1.PodPending},
		"a state that there is not":         {main: main(corev1.ContainerState{}), phase: corev1.PodPending},
		"waiting":                           {main: main(waits), phase: corev1.PodPending},
		"running":                           {init: fetch(end(0, "")), main: main(runs), phase: corev1.PodRunning},
		"init runs, main is said to":        {init: fetch(runs), main: main(waits), phase: corev1.PodPending},
		"exit 0":                            {init: fetch(end(0, "")), main: main(end(0, "Completed")), phase: corev1.PodSucceeded, code: ptr.To[int32](0)},
		"exit 7":                            {init: fetch(end(0, "")), main: main(end(7, "Error")), phase: corev1.PodFailed, code: ptr.To[int32](7)},
		"exit 0 of a job that never starts": {policy: corev1.RestartPolicyAlways, init: fetch(end(0, "")), main: main(end(0, "")), phase: corev1.PodSucceeded, code: ptr.To[int32](0)},
		"lost with exit code 0":             {init: fetch(end(0, "")), main: main(end(0, wire.ReasonLost)), phase: corev1.PodFailed},
		"lost":                              {init: fetch(end(0, "")), main: main(end(137, wire.ReasonLost)), phase: corev1.PodFailed},
		"init failed":                       {init: fetch(end(1, "")), main: main(waits), phase: corev1.PodFailed},
		"another name":                      {main: []corev1.ContainerStatus{{Name: "other", State: runs}}, phase: corev1.PodPending},
	} {
		pod := goldenPod()
		if tt.policy != "" {
			pod.Spec.RestartPolicy = tt.policy
		}
		got := statusOf(pod, wire.PodStatus{JobID: "17", InitContainers: tt.init, Containers: tt.main}, true)
		if got.Phase != tt.phase {
			t.Errorf("%s: phase %s, want %s", name, got.Phase, tt.phase)
		}
		for _, s := range got.ContainerStatuses {
			if e := s.State.Terminated; e != nil && e.ExitCode == 0 && (tt.code == nil || *tt.code != 0) {
				t.Errorf("%s: exit code 0 was made up", name)
			} else if tt.code != nil && (e == nil || e.ExitCode != *tt.code) {
				t.Errorf("%s: %+v, want exit code %d", name, s.State, *tt.code)
			}
			if w := s.State.Waiting; w != nil && w.Message != "job 17" && len(tt.main) > 0 && tt.main[0].State.Waiting != nil && tt.phase == corev1.PodPending {
				t.Errorf("%s: waiting with the message %q, want the job", name, w.Message)
			}
		}
	}
}

// TestPublishedA7ReadinessIsThePlugins checks three kinds of answers. The Slurm and the HTCondor plugin report
// whether a container is ready, but not whether it has started. The Python SDK reports neither, so a running
// container is ready.
func TestPublishedA7ReadinessIsThePlugins(t *testing.T) {
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for _, tt := range []struct {
		started *bool
		ready   bool
		probes  bool
		want    bool
	}{
		{nil, false, true, false}, {nil, true, true, true}, {nil, false, false, true},
		{ptr.To(true), false, false, false}, {ptr.To(true), true, false, true}, {ptr.To(false), true, true, false},
	} {
		pod := goldenPod()
		pod.Spec.InitContainers = nil
		pod.Annotations[annotationIP] = "192.0.2.7"
		got := statusOf(pod, wire.PodStatus{Containers: []corev1.ContainerStatus{{Name: "main", State: runs, Started: tt.started, Ready: tt.ready}}}, tt.probes)
		if got.ContainerStatuses[0].Ready != tt.want || got.PodIP != "192.0.2.7" {
			t.Errorf("started %v, ready %v, probes %v: got %v and the address %q", tt.started, tt.ready, tt.probes, got.ContainerStatuses[0].Ready, got.PodIP)
		}
	}
}
