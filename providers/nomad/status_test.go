// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"fmt"
	"strings"
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// at returns the time of an event.
func at(s int) int64 { return time.Unix(int64(1000+s), 0).UnixNano() }

func started(s int) *nomadapi.TaskEvent {
	return &nomadapi.TaskEvent{Type: nomadapi.TaskStarted, Time: at(s)}
}

func exited(s, code, signal int, oom bool) *nomadapi.TaskEvent {
	return &nomadapi.TaskEvent{Type: nomadapi.TaskTerminated, Time: at(s), DisplayMessage: fmt.Sprintf("Exit Code: %d", code), Details: map[string]string{
		"exit_code": fmt.Sprint(code), "signal": fmt.Sprint(signal), "oom_killed": fmt.Sprint(oom),
	}}
}

func alloc(status string, tasks map[string]*nomadapi.TaskState) *nomadapi.Allocation {
	return &nomadapi.Allocation{ID: "a", NodeName: "client-1", ClientStatus: status, DesiredStatus: "run", TaskStates: tasks}
}

func task1(state string, events ...*nomadapi.TaskEvent) map[string]*nomadapi.TaskState {
	return map[string]*nomadapi.TaskState{"main": {State: state, Events: events, StartedAt: time.Unix(1000, 0)}}
}

func TestObserve(t *testing.T) {
	blocked := &nomadapi.Evaluation{FailedTGAllocs: map[string]*nomadapi.AllocationMetric{group: {
		NodesEvaluated: 3, NodesAvailable: map[string]int{"dc1": 3}, ConstraintFiltered: map[string]int{"missing drivers": 1}, DimensionExhausted: map[string]int{"memory": 2},
	}}}
	nowhere := &nomadapi.Evaluation{FailedTGAllocs: map[string]*nomadapi.AllocationMetric{group: {}}}
	failed := task1("dead", &nomadapi.TaskEvent{Type: nomadapi.TaskDriverFailure, DisplayMessage: "Failed to pull `x`: not found"})
	failed["main"].Failed = true
	missing := task1("dead", &nomadapi.TaskEvent{Type: nomadapi.TaskDriverFailure, DisplayMessage: "file none not found under path"})
	missing["main"].Failed = true
	evicted := alloc("complete", task1("dead", started(1), exited(2, 0, 15, false)))
	evicted.DesiredStatus = "evict"
	preempted := alloc("complete", task1("dead", started(1), exited(2, 0, 0, false)))
	preempted.PreemptedByAllocation = "b"
	restarted := task1("running", started(1), exited(2, 4, 0, false), started(3))
	restarted["main"].Restarts = 1
	for name, tt := range map[string]struct {
		restart corev1.RestartPolicy
		seen    seen
		want    string // phase reason message; container
	}{
		"no allocation yet":     {want: "Pending: waiting ContainerCreating"},
		"no place":              {seen: seen{blocked: blocked}, want: "Pending Unschedulable Nomad has no place for the pod: 1 clients are filtered by missing drivers, 2 clients are exhausted: memory: waiting"},
		"unknown datacenter":    {seen: seen{blocked: nowhere}, want: "Pending Unschedulable Nomad has no place for the pod: no client is ready and eligible in the datacenters"},
		"pending":               {seen: seen{alloc: alloc("pending", task1("pending"))}, want: "Pending: waiting ContainerCreating"},
		"no task states":        {seen: seen{alloc: alloc("pending", nil)}, want: "Pending: waiting ContainerCreating"},
		"image is pulled":       {seen: seen{alloc: alloc("pending", task1("pending", &nomadapi.TaskEvent{Type: nomadapi.TaskDriverMessage, DisplayMessage: "Downloading image"}))}, want: "Pending: waiting ContainerCreating Downloading image"},
		"image cannot be had":   {seen: seen{alloc: alloc("pending", task1("pending", &nomadapi.TaskEvent{Type: nomadapi.TaskDriverFailure, DriverError: "Failed to pull `x`"}))}, want: "Pending: waiting ErrImagePull Failed to pull `x`"},
		"driver fails":          {seen: seen{alloc: alloc("pending", task1("pending", &nomadapi.TaskEvent{Type: nomadapi.TaskDriverFailure, DisplayMessage: "no such file"}))}, want: "Pending: waiting CreateContainerError no such file"},
		"setup fails":           {seen: seen{alloc: alloc("pending", task1("pending", &nomadapi.TaskEvent{Type: nomadapi.TaskSetupFailure, DisplayMessage: "bad"}))}, want: "Pending: waiting CreateContainerConfigError bad"},
		"failed for good":       {seen: seen{alloc: alloc("failed", failed)}, want: "Failed  main: Failed to pull `x`: not found: waiting ErrImagePull"},
		"command not found":     {seen: seen{alloc: alloc("failed", missing)}, want: "Failed  main: file none not found under path: ended 128 StartError"},
		"running":               {seen: seen{alloc: alloc("running", task1("running", started(1)))}, want: "Running: running"},
		"complete":              {seen: seen{alloc: alloc("complete", task1("dead", started(1), exited(2, 0, 0, false)))}, want: "Succeeded: ended 0 Completed"},
		"exit code":             {seen: seen{alloc: alloc("failed", task1("dead", started(1), exited(2, 7, 0, false)))}, want: "Failed: ended 7 Error"},
		"killed by a signal":    {seen: seen{alloc: alloc("failed", task1("dead", started(1), exited(2, 0, 9, false)))}, want: "Failed: ended 137 Error"},
		"out of memory":         {seen: seen{alloc: alloc("failed", task1("dead", started(1), exited(2, 137, 9, true)))}, want: "Failed: ended 137 OOMKilled"},
		"no exit code":          {seen: seen{alloc: alloc("complete", task1("dead", started(1), &nomadapi.TaskEvent{Type: nomadapi.TaskTerminated}))}, want: "Failed: waiting ContainerStatusUnknown"},
		"dead, never ran":       {seen: seen{alloc: alloc("complete", task1("dead"))}, want: "Failed: waiting"},
		"starts again":          {restart: corev1.RestartPolicyAlways, seen: seen{alloc: alloc("pending", task1("pending", started(1), exited(2, 4, 0, false), &nomadapi.TaskEvent{Type: nomadapi.TaskRestarting}))}, want: "Running: waiting CrashLoopBackOff the driver starts the container again; it ended: Exit Code: 4, last 4"},
		"started again":         {restart: corev1.RestartPolicyAlways, seen: seen{alloc: alloc("running", restarted)}, want: "Running: running, restarts 1, last 4"},
		"client disconnected":   {seen: seen{alloc: alloc("unknown", task1("running", started(1)))}, want: "Running NodeLost the client client-1 is disconnected: running, not ready"},
		"client lost":           {seen: seen{alloc: alloc("lost", task1("running", started(1)))}, want: "Failed NodeLost the client client-1 is lost: : waiting ContainerStatusUnknown"},
		"evicted":               {seen: seen{alloc: evicted}, want: "Failed Evicted"},
		"preempted":             {seen: seen{alloc: preempted}, want: "Failed Preempted"},
		"moved":                 {seen: seen{moved: true, alloc: alloc("complete", task1("dead", started(1), exited(2, 0, 0, false)))}, want: "Failed Evicted"},
		"state that is unknown": {seen: seen{alloc: alloc("strange", task1("strange"))}, want: "Pending: waiting ContainerCreating"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: tt.restart, Containers: []corev1.Container{{Name: "main"}}}}
			if tt.restart == "" {
				pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			}
			s := podstatus.Status(pod, observe(pod, tt.seen))
			if got := describeStatus(s); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func describeStatus(s corev1.PodStatus) string {
	text := string(s.Phase)
	if s.Reason+s.Message != "" {
		text += " " + s.Reason + " " + s.Message
	}
	c := s.ContainerStatuses[0]
	switch {
	case c.State.Running != nil:
		text += ": running"
		if !c.Ready {
			text += ", not ready"
		}
	case c.State.Terminated != nil:
		text += fmt.Sprintf(": ended %d %s", c.State.Terminated.ExitCode, c.State.Terminated.Reason)
	default:
		text += strings.TrimRight(fmt.Sprintf(": waiting %s %s", c.State.Waiting.Reason, c.State.Waiting.Message), " ")
	}
	if c.RestartCount > 0 {
		text += fmt.Sprintf(", restarts %d", c.RestartCount)
	}
	if l := c.LastTerminationState.Terminated; l != nil {
		text += fmt.Sprintf(", last %d", l.ExitCode)
	}
	return text
}

// TestInitContainerThatWaits checks an init container that Nomad reports as running while its shell waits for
// the container before it.
func TestInitContainerThatWaits(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "one"}, {Name: "two"}}, Containers: []corev1.Container{{Name: "main"}}}}
	tasks := map[string]*nomadapi.TaskState{"one": {State: "running"}, "two": {State: "running"}}
	if got := observe(pod, seen{alloc: alloc("running", tasks)}); got.Containers[0].State != podstatus.Running || got.Containers[1].State != podstatus.Waiting {
		t.Errorf("got %+v, want the second one to wait", got.Containers)
	}
	tasks["one"] = &nomadapi.TaskState{State: "dead", Events: []*nomadapi.TaskEvent{started(1), exited(5, 0, 0, false)}}
	tasks["two"].StartedAt = time.Unix(1001, 0)
	got := observe(pod, seen{alloc: alloc("running", tasks)})
	if two := got.Containers[1]; two.State != podstatus.Running || !two.Run.StartedAt.Equal(time.Unix(1005, 0)) {
		t.Errorf("got %+v, want it to run since the end of the first one", two)
	}
}
