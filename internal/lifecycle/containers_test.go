// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// container is the status of the container c, which runs.
func container(changes ...func(*corev1.ContainerStatus)) corev1.ContainerStatus {
	c := runningStatus().ContainerStatuses[0]
	for _, change := range changes {
		change(&c)
	}
	return c
}

func exited(code int32) func(*corev1.ContainerStatus) {
	return func(c *corev1.ContainerStatus) {
		c.Ready = false
		c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
}

// waiting is a container that waits and has never run.
func waiting(c *corev1.ContainerStatus) {
	*c = corev1.ContainerStatus{Name: c.Name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}
}

// backingOff is a container that waits for its next run.
func backingOff(code int32) func(*corev1.ContainerStatus) {
	return func(c *corev1.ContainerStatus) {
		waiting(c)
		c.State.Waiting.Reason, c.LastTerminationState.Terminated = "CrashLoopBackOff", &corev1.ContainerStateTerminated{ExitCode: code}
	}
}

func stateless(c *corev1.ContainerStatus) { *c = corev1.ContainerStatus{Name: c.Name} }

func anonymous(c *corev1.ContainerStatus) { c.ContainerID = "" }

func named(name string) func(*corev1.ContainerStatus) {
	return func(c *corev1.ContainerStatus) { c.Name = name }
}

// brief is what of a container's state these tests are about.
func brief(c *corev1.ContainerStatus) string {
	switch {
	case c.State.Running != nil:
		return "running"
	case c.State.Waiting != nil:
		return c.State.Waiting.Reason
	case c.State.Terminated == nil:
		return ""
	case c.State.Terminated.ExitCode == 137 && c.State.Terminated.Reason == reasonStatusUnknown:
		return "killed"
	}
	return "exited"
}

// TestEndOfAPodInventsNoExitCode: the phase is the provider's word and counts at once; how a container
// ended is what the provider says, and nothing until it does.
func TestEndOfAPodInventsNoExitCode(t *testing.T) {
	ran := pod("a", inPhase(corev1.PodRunning), func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{container()} })
	declared := pod("a", inPhase(corev1.PodFailed), func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{container()} })
	for _, tt := range []struct {
		name     string
		api      *corev1.Pod
		phase    corev1.PodPhase
		reported []corev1.ContainerStatus
		want     string
	}{
		{"it is said to run", pod("a"), corev1.PodSucceeded, []corev1.ContainerStatus{container()}, reasonStatusUnknown},
		{"it is said to run, without an ID", pod("a"), corev1.PodSucceeded, []corev1.ContainerStatus{container(anonymous)}, reasonStatusUnknown},
		{"it ran before and is said to run", ran, corev1.PodFailed, []corev1.ContainerStatus{container()}, reasonStatusUnknown},
		{"it ran before and is said to wait", ran, corev1.PodFailed, []corev1.ContainerStatus{container(waiting)}, reasonStatusUnknown},
		{"it waits for its next run", pod("a"), corev1.PodFailed, []corev1.ContainerStatus{container(backingOff(1))}, reasonStatusUnknown},
		{"it ran before and nothing is said of it", ran, corev1.PodSucceeded, nil, reasonStatusUnknown},
		{"it runs on, and somebody else declared the pod failed", declared, corev1.PodRunning, []corev1.ContainerStatus{container()}, reasonStatusUnknown},
		{"it never ran", pod("a"), corev1.PodFailed, []corev1.ContainerStatus{container(waiting)}, "ContainerCreating"},
		{"it has no state", pod("a"), corev1.PodFailed, []corev1.ContainerStatus{container(stateless)}, ""},
		{"it has exited", ran, corev1.PodFailed, []corev1.ContainerStatus{container(exited(7))}, "exited"},
		{"the pod goes on", ran, corev1.PodRunning, nil, "running"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report := &corev1.PodStatus{Phase: tt.phase, ContainerStatuses: tt.reported}
			_, after := publish(t, View{API: tt.api, Report: report, Attempted: true})
			got := &after.Status.ContainerStatuses[0]
			if brief(got) != tt.want {
				t.Fatalf("got %q, want %q", brief(got), tt.want)
			}
			if endUnknown(got) && (got.Ready || got.Started == nil || *got.Started || got.State.Waiting.Message == "") {
				t.Errorf("got %+v, want neither ready nor started, and a message", got)
			}
			if w, status := Publish(View{API: after, Report: report, Attempted: true, Now: now}); w != Keep {
				t.Errorf("a second time: %+v", status)
			}
			report.ContainerStatuses = []corev1.ContainerStatus{container(exited(42))}
			_, after = publish(t, View{API: after, Report: report, Attempted: true})
			if end := after.Status.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 42 {
				t.Errorf("the exit code comes late: got %+v, want 42", after.Status.ContainerStatuses[0].State)
			}
		})
	}
}

// TestUnknownEndStaysOne: whatever is said of the container, but how it ended.
func TestUnknownEndStaysOne(t *testing.T) {
	report := &corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{container(anonymous)}}
	_, after := publish(t, View{API: pod("a"), Report: report, Attempted: true})
	for _, said := range []func(*corev1.ContainerStatus){waiting, anonymous, stateless} {
		report.ContainerStatuses = []corev1.ContainerStatus{container(said)}
		_, after = publish(t, View{API: after, Report: report, Attempted: true})
		if got := &after.Status.ContainerStatuses[0]; !endUnknown(got) {
			t.Errorf("got %q, want %q", brief(got), reasonStatusUnknown)
		}
	}
}

// TestSidecarWithUnknownEndHadStarted: the pod was initialized, and its end does not take that back.
func TestSidecarWithUnknownEndHadStarted(t *testing.T) {
	always, started := corev1.ContainerRestartPolicyAlways, true
	api := pod("a", func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "s", RestartPolicy: &always}}
	})
	report := &corev1.PodStatus{
		Phase:                 corev1.PodFailed,
		ContainerStatuses:     []corev1.ContainerStatus{container(exited(1))},
		InitContainerStatuses: []corev1.ContainerStatus{container(named("s"), func(c *corev1.ContainerStatus) { c.Started = &started })},
	}
	_, after := publish(t, View{API: api, Report: report, Attempted: true})
	if c := condition(after.Status.Conditions, corev1.PodInitialized); c.Status != corev1.ConditionTrue || !endUnknown(&after.Status.InitContainerStatuses[0]) {
		t.Errorf("Initialized is %+v, the sidecar %q", c, brief(&after.Status.InitContainerStatuses[0]))
	}
}

// TestStopEndsWhatHasRun, as a kubelet does when it did not see the end, and nothing else.
func TestStopEndsWhatHasRun(t *testing.T) {
	for _, tt := range []struct {
		name       string
		containers []corev1.ContainerStatus // as the API server has them
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
