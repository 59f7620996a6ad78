// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// statusOf returns the status of a pod with the restart policy Always after a sequence of instances.
func statusOf(t *testing.T, workloadText string, instances ...string) corev1.PodStatus {
	t.Helper()
	pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "a", Image: "i"}}}}
	for _, text := range instances {
		var s seen
		if err := json.Unmarshal([]byte(workloadText), &s.workload); err != nil {
			t.Fatal(err)
		}
		if text != "" {
			s.instance = &instance{}
			if err := json.Unmarshal([]byte(text), s.instance); err != nil {
				t.Fatal(err)
			}
		}
		pod.Status = (&driver{}).Status(pod, s)
	}
	return pod.Status
}

// tell formats a status of one container as a line.
func tell(s corev1.PodStatus) string {
	c := s.ContainerStatuses[0]
	text := string(s.Phase) + " " + s.Reason + " "
	switch {
	case c.State.Running != nil:
		text += "runs"
	case c.State.Terminated != nil:
		text += "exit " + strconv.Itoa(int(c.State.Terminated.ExitCode)) + " " + c.State.Terminated.Reason
	default:
		text += "wait:" + c.State.Waiting.Reason
	}
	if c.Ready {
		text += " ready"
	}
	if last := c.LastTerminationState.Terminated; last != nil {
		text += " after " + strconv.Itoa(int(last.ExitCode))
	}
	return text
}

const active = `{"id":"w","status":"ACTIVE","metadata":{"createdAt":"2026-01-01T00:00:00Z","deleteRequestedAt":null}}`

// TestStates checks every phase of an instance and every state of a container, and unknown ones.
func TestStates(t *testing.T) {
	const (
		none   = `[]`
		begins = `[{"name":"a","phase":"STARTING","waiting":{"reason":"ImagePullBackOff","message":"m"}}]`
		runs   = `[{"name":"a","phase":"RUNNING","ready":true,"running":{"startedAt":"2026-01-01T00:00:00Z"}}]`
		notYet = `[{"name":"a","phase":"RUNNING","running":{"startedAt":"2026-01-01T00:00:00Z"}}]`
		well   = `[{"name":"a","phase":"STOPPED","terminated":{"exitCode":0,"reason":"Completed","finishedAt":"2026-01-01T00:00:09Z"}}]`
		zero   = `[{"name":"a","phase":"STOPPED","terminated":{"reason":"Completed"}}]`
		badly  = `[{"name":"a","phase":"FAILED","terminated":{"exitCode":7,"reason":"Error"}}]`
		oom    = `[{"name":"a","phase":"FAILED","terminated":{"exitCode":137,"reason":"OOMKilled"}}]`
		untold = `[{"name":"a","phase":"FAILED","terminated":{"reason":"Error"}}]`
		backs  = `[{"name":"a","phase":"STARTING","restartCount":3,"waiting":{"reason":"CrashLoopBackOff"}}]`
		silent = `[{"name":"a","phase":"CONTAINER_PHASE_UNSPECIFIED"}]`
		odd    = `[{"name":"a","phase":"HIBERNATED"}]`
		other  = `[{"name":"pause","phase":"RUNNING","running":{}}]`
	)
	for _, c := range []struct{ name, phase, containers, want string }{
		{"scheduling", "SCHEDULING", none, "Pending SCHEDULING wait:ContainerCreating"},
		{"starting", "STARTING", none, "Pending  wait:ContainerCreating"},
		{"an image that is not there", "STARTING", begins, "Pending  wait:ImagePullBackOff"},
		{"running", "RUNNING", runs, "Running  runs ready"},
		{"running, and nothing is told of the containers", "RUNNING", none, "Pending  wait:ContainerCreating"},
		{"not ready", "RUNNING", notYet, "Running  runs"},
		{"ended well, and is restarted", "RUNNING", well, "Running  exit 0 Completed"},
		{"a zero that was left out", "RUNNING", zero, "Running  exit 0 Completed"},
		{"ended badly, and is restarted", "RUNNING", badly, "Running  exit 7 Error"},
		{"for want of memory", "RUNNING", oom, "Running  exit 137 OOMKilled"},
		{"nobody tells the code", "RUNNING", untold, "Running  wait:ContainerStatusUnknown"},
		{"waits for a restart", "RUNNING", backs, "Running  wait:CrashLoopBackOff"},
		{"a container of which nothing is known", "RUNNING", silent, "Pending  wait:ContainerCreating"},
		{"a phase of a container that is not known", "RUNNING", odd, "Pending  wait:ContainerCreating"},
		{"a container that the pod does not have", "RUNNING", other, "Pending  wait:ContainerCreating"},
		{"failed to start", "FAILED", none, "Pending FAILED wait:ContainerCreating"},
		{"failed, and its container has ended", "FAILED", badly, "Running FAILED exit 7 Error"},
		{"completed", "COMPLETED", well, "Running COMPLETED exit 0 Completed"},
		{"stopped", "STOPPED", well, "Running STOPPED exit 0 Completed"},
		{"about to go", "DELETING", runs, "Running DELETING runs ready"},
		{"unspecified", "INSTANCE_PHASE_UNSPECIFIED", runs, "Running INSTANCE_PHASE_UNSPECIFIED runs ready"},
		{"a phase that is not known", "HIBERNATING", runs, "Running HIBERNATING runs ready"},
		{"a phase that is not known, nothing is told", "HIBERNATING", none, "Pending HIBERNATING wait:ContainerCreating"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := statusOf(t, active, `{"id":"i","phase":"`+c.phase+`","ipAddress":"10.0.0.1","ipv6Address":"fd00::1","containerStatuses":`+c.containers+`}`)
			if got := tell(s); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if s.PodIP != "10.0.0.1" || len(s.PodIPs) != 2 || s.StartTime == nil {
				t.Errorf("got the addresses %v, and the start %v", s.PodIPs, s.StartTime)
			}
		})
	}
}

// TestStatesOfWorkloads checks every status of a workload, with and without an instance.
func TestStatesOfWorkloads(t *testing.T) {
	const runs = `{"id":"i","phase":"RUNNING","containerStatuses":[{"name":"a","ready":true,"running":{}}]}`
	const ended = `{"id":"i","phase":"DELETING","containerStatuses":[{"name":"a","terminated":{"exitCode":143}}]}`
	for _, c := range []struct{ name, status, deleted, instance, want string }{
		{"no instance yet", "ACTIVE", "", "", "Pending  wait:ContainerCreating"},
		{"suspended", "SUSPENDED", "", "", "Pending SUSPENDED wait:ContainerCreating"},
		{"suspended, and it runs", "SUSPENDED", "", runs, "Running SUSPENDED runs ready"},
		{"not paid", "BILLING_SUSPENDED", "", "", "Pending BILLING_SUSPENDED wait:ContainerCreating"},
		{"inactive", "INACTIVE", "", "", "Pending INACTIVE wait:ContainerCreating"},
		{"a status that is not known", "FROZEN", "", runs, "Running FROZEN runs ready"},
		{"without a status", "", "", runs, "Running  runs ready"},
		{"deleted, and it runs", "ACTIVE", "2026-01-01T00:00:00Z", runs, "Running  runs ready"},
		{"deleted, and all has ended", "ACTIVE", "2026-01-01T00:00:00Z", ended, "Failed DELETING exit 143 Error"},
		{"all has ended, and it was not deleted", "ACTIVE", "", ended, "Running DELETING exit 143 Error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := tell(statusOf(t, `{"id":"w","status":"`+c.status+`","metadata":{"deleteRequestedAt":"`+c.deleted+`"}}`, c.instance)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	for _, c := range []struct {
		status, deleted string
		instance        *instance
		want            bool
	}{
		{"INACTIVE", "2026-01-01T00:00:00Z", nil, true}, {"INACTIVE", "2026-01-01T00:00:00Z", &instance{}, false}, {"INACTIVE", "", nil, false}, {"ACTIVE", "2026-01-01T00:00:00Z", nil, false},
	} {
		s := seen{instance: c.instance}
		s.Status, s.Metadata.DeleteRequestedAt = c.status, c.deleted
		if got := s.isGone(); got != c.want {
			t.Errorf("%+v is gone: %t", c, got)
		}
	}
}

// TestRunsBeforeAreRemembered: the service reports only one run of a container.
func TestRunsBeforeAreRemembered(t *testing.T) {
	one := func(text string) string {
		return `{"id":"i","phase":"RUNNING","containerStatuses":[{"name":"a",` + text + `}]}`
	}
	s := statusOf(t, active, one(`"containerId":"c-1","running":{}`), one(`"containerId":"c-1","terminated":{"exitCode":3,"reason":"Error"}`), one(`"containerId":"c-2","restartCount":1,"ready":true,"running":{}`))
	if got := tell(s); got != "Running  runs ready after 3" || s.ContainerStatuses[0].ContainerID != "stackpath://c-2" || s.ContainerStatuses[0].LastTerminationState.Terminated.ContainerID != "stackpath://c-1" {
		t.Errorf("got %q, %+v", got, s.ContainerStatuses[0])
	}
}

// TestTerminationMessagesAreTold checks that termination messages are reported with the reason and the times of the service.
func TestTerminationMessagesAreTold(t *testing.T) {
	s := statusOf(t, active, `{"id":"i","phase":"RUNNING","containerStatuses":[{"name":"a","terminated":{"exitCode":3,"reason":"Error","message":"that is why","startedAt":"2026-01-01T00:00:01Z","finishedAt":"2026-01-01T00:00:02.5Z"}}]}`)
	got := s.ContainerStatuses[0].State.Terminated
	if got == nil || got.Message != "that is why" || got.FinishedAt.Sub(got.StartedAt.Time) != 1500*time.Millisecond || got.ContainerID != "stackpath://i/a/0" {
		t.Errorf("got %+v", got)
	}
}

// TestSettled checks which instances are looked up often because they are not in their expected state.
func TestSettled(t *testing.T) {
	for text, want := range map[string]bool{
		`null`:                false,
		`{"phase":"RUNNING"}`: false,
		`{"phase":"RUNNING","containerStatuses":[{"ready":true,"running":{}}]}`:                              true,
		`{"phase":"RUNNING","containerStatuses":[{"running":{}}]}`:                                           false,
		`{"phase":"RUNNING","containerStatuses":[{"ready":true,"running":{}},{"ready":false,"waiting":{}}]}`: false,
		`{"phase":"STARTING","containerStatuses":[{"ready":true,"running":{}}]}`:                             false,
	} {
		var i *instance
		if err := json.Unmarshal([]byte(text), &i); err != nil {
			t.Fatal(err)
		}
		if got := i.isSettled(); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}
