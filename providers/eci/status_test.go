// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// TestStates covers every state of a group, and an unknown state.
func TestStates(t *testing.T) {
	const (
		none    = `[]`
		waits   = `[{"Name":"a","State":{"Waiting":{"Reason":"ImagePullBackOff","Message":"m"}}}]`
		runs    = `[{"Name":"a","Ready":true,"State":{"Running":{"StartedAtstartedAt":"2026-01-01T00:00:00Z"}}}]`
		notYet  = `[{"Name":"a","Ready":false,"Started":true,"State":{"Running":{"startedAt":"2026-01-01T00:00:00Z"}}}]`
		well    = `[{"Name":"a","State":{"Terminated":{"ExitCode":0,"Reason":"Completed","FinishedAt":"2026-01-01T00:00:09Z"}}}]`
		badly   = `[{"Name":"a","State":{"Terminated":{"ExitCode":7,"FinishedAt":"2026-01-01T00:00:09Z"}}}]`
		killed  = `[{"Name":"a","State":{"Terminated":{"Signal":9,"FinishedAt":"2026-01-01T00:00:09Z"}}}]`
		oom     = `[{"Name":"a","State":{"Terminated":{"ExitCode":137,"Reason":"OOMKilled","FinishedAt":"2026-01-01T00:00:09Z"}}}]`
		untold  = `[{"Name":"a","State":{"Terminated":{"Reason":"Unknown","FinishedAt":"2026-01-01T00:00:09Z"}}}]`
		zeros   = `[{"Name":"a","State":{"Waiting":{"Reason":"","Message":""},"Running":{"StartedAt":""},"Terminated":{"ExitCode":0,"Reason":"","FinishedAt":""}}}]`
		retries = `[{"Name":"a","RestartCount":2,"State":{"Waiting":{"Reason":"CrashLoopBackOff"}},"LastState":{"Terminated":{"ExitCode":3,"FinishedAt":"2026-01-01T00:00:09Z"}}}]`
	)
	for _, c := range []struct {
		name, state, containers string
		want                    string // phase, reason of the pod, state of the container
	}{
		{"scheduling", stateScheduling, none, "Pending  wait:ContainerCreating"},
		{"no place", stateScheduleFailed, none, "Failed ScheduleFailed wait:ContainerCreating"},
		{"pending", statePending, none, "Pending  wait:ContainerCreating"},
		{"an image that is not there", statePending, waits, "Pending  wait:ImagePullBackOff"},
		{"running", stateRunning, runs, "Running  runs ready"},
		{"running, not ready", stateRunning, notYet, "Running  runs"},
		{"running, waits for a restart", stateRunning, retries, "Running  wait:CrashLoopBackOff after 3"},
		{"running, and everything is written as zero", stateRunning, zeros, "Pending  wait:ContainerCreating"},
		{"succeeded", stateSucceeded, well, "Succeeded  exit 0"},
		{"succeeded, and nobody tells the code", stateSucceeded, untold, "Failed  wait:ContainerStatusUnknown"},
		{"succeeded, and the container is said to run", stateSucceeded, runs, "Failed  wait:ContainerStatusUnknown"},
		{"failed", stateFailed, badly, "Failed  exit 7"},
		{"failed by a signal", stateFailed, killed, "Failed  exit 137"},
		{"failed for want of memory", stateFailed, oom, "Failed  exit 137 OOMKilled"},
		{"failed, and its containers were well", stateFailed, well, "Failed  exit 0"},
		{"restarting", stateRestarting, badly, "Failed  exit 7"}, // the pod is never restarted
		{"updating", stateUpdating, runs, "Running  runs ready"},
		{"terminating", stateTerminating, runs, "Running  runs ready"},
		{"expired", stateExpired, runs, "Failed Expired wait:ContainerStatusUnknown"},
		{"a state that is not known", "Hibernating", runs, "Running  runs ready"},
		{"a state that is not known, nothing is told", "Hibernating", none, "Pending  wait:ContainerCreating"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s seen
			text := `{"ContainerGroupId":"eci-1","Status":"` + c.state + `","PodStatus":{"PodIp":"10.0.0.1","ContainerStatuses":` + c.containers + `}}`
			if err := json.Unmarshal([]byte(text), &s.status); err != nil {
				t.Fatal(err)
			}
			pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "i"}}}}
			if strings.Contains(c.name, "restart") && c.state == stateRunning {
				pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
			}
			got := podstatus.Status(pod, observe(s))
			if text := tell(got); text != c.want {
				t.Errorf("got %q, want %q", text, c.want)
			}
			if got.PodIP != "10.0.0.1" {
				t.Errorf("the address is %q", got.PodIP)
			}
		})
	}
}

// tell returns a status with one container as a line of text.
func tell(s corev1.PodStatus) string {
	c := s.ContainerStatuses[0]
	text := string(s.Phase) + " " + s.Reason + " "
	switch {
	case c.State.Running != nil:
		text += "runs"
	case c.State.Terminated != nil:
		text += "exit " + itoa(c.State.Terminated.ExitCode)
		if r := c.State.Terminated.Reason; r != "Completed" && r != "Error" {
			text += " " + r
		}
	default:
		text += "wait:" + c.State.Waiting.Reason
	}
	if c.Ready {
		text += " ready"
	}
	if last := c.LastTerminationState.Terminated; last != nil {
		text += " after " + itoa(last.ExitCode)
	}
	return text
}

func itoa(n int32) string {
	data, _ := json.Marshal(n)
	return string(data)
}

func TestInitContainersAreInTheDetails(t *testing.T) {
	var s seen
	if err := json.Unmarshal([]byte(`{"ContainerGroupId":"eci-1","Status":"Failed"}`), &s.status); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
		InitContainers: []corev1.Container{{Name: "i"}}, Containers: []corev1.Container{{Name: "a"}}}}
	if got := podstatus.Status(pod, observe(s)); got.Phase != corev1.PodFailed || got.InitContainerStatuses[0].State.Terminated != nil {
		t.Errorf("without details: %+v", got)
	}
	s.details = &group{}
	text := `{"InitContainers":[{"Name":"i","CurrentState":{"State":"Terminated","ExitCode":4,"DetailStatus":"Error","FinishTime":"2026-01-01T00:00:09Z"}}]}`
	if err := json.Unmarshal([]byte(text), s.details); err != nil {
		t.Fatal(err)
	}
	got := podstatus.Status(pod, observe(s)).InitContainerStatuses[0].State.Terminated
	if got == nil || got.ExitCode != 4 || got.ContainerID != "eci://eci-1/i/0" || got.FinishedAt.IsZero() {
		t.Errorf("got %+v", got)
	}
}
