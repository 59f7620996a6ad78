// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStopEndsWhatHasRun holds that containers that have run are ended as by a kubelet that did not see their end, and that others are not
// changed.
func TestStopEndsWhatHasRun(t *testing.T) {
	for _, tt := range []struct {
		name       string
		containers []corev1.ContainerStatus // in the API server
		report     *corev1.PodStatus
		failure    *PodFailure
		want       []string
		phase      corev1.PodPhase
	}{
		{name: "never created", phase: corev1.PodFailed},
		{name: "never created, and waits", containers: []corev1.ContainerStatus{container(waiting)}, want: []string{"ContainerCreating"}, phase: corev1.PodFailed},
		{name: "never created, and the node's decision", failure: &PodFailure{Reason: "Why"}, phase: corev1.PodFailed},
		{name: "accepted, and never ran", report: &corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{container(waiting)}}, want: []string{"ContainerCreating"}, phase: corev1.PodFailed},
		{name: "accepted, and nothing told of containers", report: &corev1.PodStatus{Phase: corev1.PodRunning}, phase: corev1.PodFailed},
		{name: "no state", containers: []corev1.ContainerStatus{container(stateless)}, want: []string{""}, phase: corev1.PodFailed},
		{name: "ran before a restart", containers: []corev1.ContainerStatus{container()}, want: []string{"killed"}, phase: corev1.PodFailed},
		{name: "runs", report: runningStatus(), want: []string{"killed"}, phase: corev1.PodFailed},
		{name: "runs, and the node's decision", report: runningStatus(), failure: &PodFailure{Reason: "Why"}, want: []string{"killed"}, phase: corev1.PodFailed},
		{name: "ran, and is said to wait", containers: []corev1.ContainerStatus{container()},
			report: &corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{container(waiting)}}, want: []string{"killed"}, phase: corev1.PodFailed},
		{name: "waits for its next run", containers: []corev1.ContainerStatus{container(backingOff(0))}, want: []string{"killed"}, phase: corev1.PodFailed},
		{name: "had failed", containers: []corev1.ContainerStatus{container(exited(7))}, want: []string{"exited"}, phase: corev1.PodFailed},
		{name: "had succeeded", containers: []corev1.ContainerStatus{container(exited(0))}, want: []string{"exited"}, phase: corev1.PodSucceeded},
		{name: "had succeeded, and the node's decision", containers: []corev1.ContainerStatus{container(exited(0))}, failure: &PodFailure{Reason: "Why"}, want: []string{"exited"}, phase: corev1.PodFailed},
		{name: "had succeeded, and another runs", containers: []corev1.ContainerStatus{container(exited(0)), container(named("d"))}, want: []string{"exited", "killed"}, phase: corev1.PodFailed},
		{name: "had failed, and is said to wait", containers: []corev1.ContainerStatus{container(exited(7), anonymous)},
			report: &corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{container(waiting)}}, want: []string{"killed"}, phase: corev1.PodFailed},
		{name: "has an ID, and no state", containers: []corev1.ContainerStatus{container(stateless, func(c *corev1.ContainerStatus) { c.ContainerID = "x://1" })}, want: []string{"killed"}, phase: corev1.PodFailed},
		{name: "has restarted, and no state", containers: []corev1.ContainerStatus{container(stateless, func(c *corev1.ContainerStatus) { c.RestartCount = 1 })}, want: []string{"killed"}, phase: corev1.PodFailed},
		{name: "nothing is known of one", containers: []corev1.ContainerStatus{container(exited(0), named("d"))}, want: []string{"exited"}, phase: corev1.PodFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			api := pod("a", deleting(1), func(p *corev1.Pod) { p.Status.ContainerStatuses = tt.containers })
			_, after := publish(t, View{API: api, Report: tt.report, Failure: tt.failure, Attempted: true, Stopped: true, StopAsked: true})
			if after.Status.Phase != tt.phase {
				t.Errorf("phase %s, want %s", after.Status.Phase, tt.phase)
			}
			got := after.Status.ContainerStatuses
			if len(got) != len(tt.want) {
				t.Fatalf("got %+v, want %q", got, tt.want)
			}
			for i := range got {
				if brief(&got[i]) != tt.want[i] || got[i].Ready {
					t.Errorf("container %s is %q, ready %v; want %q", got[i].Name, brief(&got[i]), got[i].Ready, tt.want[i])
				}
			}
		})
	}
}

// TestStopTellsWhatIsKnownOfTheEnd holds this for every kind of container.
func TestStopTellsWhatIsKnownOfTheEnd(t *testing.T) {
	yes := true
	runs := container(func(c *corev1.ContainerStatus) { c.Started = &yes })
	api := pod("a", deleting(1), inPhase(corev1.PodRunning), func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{runs}
		p.Status.InitContainerStatuses, p.Status.EphemeralContainerStatuses = p.Status.ContainerStatuses, p.Status.ContainerStatuses
	})
	_, after := publish(t, View{API: api, Attempted: true, Stopped: true, StopAsked: true})
	s := &after.Status
	for kind, list := range map[string][]corev1.ContainerStatus{"": s.ContainerStatuses, "init": s.InitContainerStatuses, "ephemeral": s.EphemeralContainerStatuses} {
		c, since := &list[0], metav1.Time{Time: now}
		if brief(c) != "killed" || c.Ready || c.Started != nil {
			t.Errorf("the %s container: got %+v, want one that was killed", kind, c)
		} else if end := c.State.Terminated; end.Message == "" || end.ContainerID != runs.ContainerID || !end.StartedAt.Equal(&since) {
			t.Errorf("the %s container: got the end %+v, want one of %s, started %v", kind, end, runs.ContainerID, since)
		}
	}
}

// TestReasonAtTheStop holds that the reason of a sync error is removed, and the backend's reason is kept.
func TestReasonAtTheStop(t *testing.T) {
	report := &corev1.PodStatus{Phase: corev1.PodRunning, Reason: "Backend", Message: "slow"}
	for _, tt := range []struct {
		name      string
		failure   *PodFailure
		syncError *SyncError
		want      string
	}{
		{"nothing", nil, nil, "Backend slow"},
		{"a sync error", nil, &SyncError{Reason: ReasonProviderFailed, Message: "no"}, " "},
		{"a failure, and a sync error", &PodFailure{Reason: "Why", Message: "late"}, &SyncError{Reason: ReasonProviderFailed, Message: "no"}, "Why late"},
	} {
		_, after := publish(t, View{API: pod("a", deleting(1)), Report: report, Failure: tt.failure, SyncError: tt.syncError, Attempted: true, Stopped: true})
		if got := after.Status.Reason + " " + after.Status.Message; got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestStopTakesNoEndBack holds that the reported end of the pod counts, regardless of its containers.
func TestStopTakesNoEndBack(t *testing.T) {
	report := endedStatus(0)
	report.Phase, report.Reason = corev1.PodFailed, "Evicted"
	_, after := publish(t, View{API: pod("a", deleting(1)), Report: report, Attempted: true, Stopped: true, StopAsked: true})
	if s := after.Status; s.Phase != corev1.PodFailed || s.Reason != "Evicted" {
		t.Errorf("got %s %q, want Failed, Evicted", s.Phase, s.Reason)
	}
}
