// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestSyncErrorIsTakenBackByWhatTheBackendSays: after a restart the backend's message is unknown, so it must not be cleared together with
// the sync error.
func TestSyncErrorIsTakenBackByWhatTheBackendSays(t *testing.T) {
	failing := pod("a")
	failing.Status = corev1.PodStatus{Phase: corev1.PodRunning, Reason: ReasonProviderFailed, Message: "update failed"}
	if write, s := Publish(View{API: failing, Attempted: true, Now: now}); write != Keep {
		t.Errorf("a pod that runs: got %v %q before the backend was heard, want nothing written", write, s.Message)
	}
	report := corev1.PodStatus{Phase: corev1.PodRunning, Message: "the backend's"}
	if _, s := Publish(View{API: failing, Attempted: true, Report: &report, Now: now}); s.Reason != "" || s.Message != report.Message {
		t.Errorf("got %q %q, want the backend's own", s.Reason, s.Message)
	}
	failing.Status.Phase = corev1.PodPending
	if _, s := Publish(View{API: failing, Attempted: true, Now: now}); s.Message != "" {
		t.Errorf("a pod that was never reported: got %q, want the sync error taken back", s.Message)
	}
}

// TestContainersStopWaitingForTheirConfiguration holds this if another step fails, and if nothing fails any more.
func TestContainersStopWaitingForTheirConfiguration(t *testing.T) {
	waits := &SyncError{Reason: ReasonProviderFailed, Message: "no ConfigMap", WaitingReason: WaitingConfig}
	_, after := publish(t, View{API: pod("a"), SyncError: waits})
	if w := after.Status.ContainerStatuses[0].State.Waiting; w == nil || w.Reason != WaitingConfig || w.Message != "no ConfigMap" {
		t.Fatalf("got %+v, want a container that waits", after.Status.ContainerStatuses)
	}
	for name, next := range map[string]*SyncError{"nothing fails": nil, "another thing fails": {Reason: ReasonProviderFailed, Message: "no answer"}} {
		_, then := publish(t, View{API: after, SyncError: next})
		if w := then.Status.ContainerStatuses[0].State.Waiting; w == nil || w.Reason != "ContainerCreating" || w.Message != "" {
			t.Errorf("%s: got %+v, want a container that is about to be created", name, then.Status.ContainerStatuses)
		}
	}
}

// TestSyncErrorIsShown holds that a sync error is the reason of the pod, and of its containers while the backend reports none.
func TestSyncErrorIsShown(t *testing.T) {
	two := func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "d", Image: "j"})
	}
	why := func(container, reason string) *SyncError {
		return &SyncError{Reason: ReasonProviderFailed, Message: "no", Container: container, WaitingReason: reason}
	}
	for _, tt := range []struct {
		name       string
		api        *corev1.Pod
		report     *corev1.PodStatus
		err        *SyncError
		phase      corev1.PodPhase
		containers []string // their waiting reasons
	}{
		{"of the pod", pod("a"), nil, why("", ""), corev1.PodPending, nil},
		{"of all containers", pod("a", two), nil, why("", WaitingConfig), corev1.PodPending, []string{WaitingConfig, WaitingConfig}},
		{"of one container", pod("a", two), nil, why("d", WaitingConfig), corev1.PodPending, []string{"ContainerCreating", WaitingConfig}},
		{"of a pod that runs", pod("a", inPhase(corev1.PodRunning)), nil, why("", ""), corev1.PodRunning, nil},
		{"beside a report", pod("a"), runningStatus(), why("", WaitingConfig), corev1.PodRunning, []string{"running"}},
	} {
		_, after := publish(t, View{API: tt.api, Report: tt.report, SyncError: tt.err})
		s := after.Status
		if s.Phase != tt.phase || s.Reason != tt.err.Reason || s.Message != tt.err.Message || len(s.ContainerStatuses) != len(tt.containers) {
			t.Errorf("%s: got %+v", tt.name, s)
			continue
		}
		for i, c := range s.ContainerStatuses {
			spec, w := tt.api.Spec.Containers[i], c.State.Waiting
			if brief(&c) != tt.containers[i] || c.Name != spec.Name || tt.report == nil && c.Image != spec.Image {
				t.Errorf("%s: got %+v, want %s to wait for %q", tt.name, c, spec.Name, tt.containers[i])
			}
			if w != nil && (w.Message == "no") != (w.Reason == WaitingConfig) {
				t.Errorf("%s: %s waits with %q", tt.name, c.Name, w.Message)
			}
		}
	}
}

// TestReasonsOfOthersStay holds this also for waiting reasons of containers that did not wait for their configuration.
func TestReasonsOfOthersStay(t *testing.T) {
	api := pod("a", inPhase(corev1.PodPending), func(p *corev1.Pod) { p.Status.Reason = "Scheduling" })
	if w, status := Publish(View{API: api, Now: now}); w != Keep {
		t.Errorf("another reason: got %+v", status)
	}
	report := &corev1.PodStatus{Phase: corev1.PodPending, Reason: ReasonProviderFailed, Message: "the backend's"}
	if _, s := Publish(View{API: api, Report: report, Now: now}); s.Reason != report.Reason || s.Message != report.Message {
		t.Errorf("the backend's own word: got %q %q", s.Reason, s.Message)
	}
	api.Status.Reason = ReasonProviderFailed
	api.Status.ContainerStatuses = []corev1.ContainerStatus{container(), container(named("d"), backingOff(1))}
	_, after := publish(t, View{API: api})
	if got := after.Status.ContainerStatuses; brief(&got[0]) != "running" || brief(&got[1]) != "CrashLoopBackOff" {
		t.Errorf("got %+v", got)
	}
}
