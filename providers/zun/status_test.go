// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// brief formats a status as a short text.
func brief(s corev1.PodStatus) string {
	text := string(s.Phase)
	if s.Reason != "" {
		text += "(" + s.Reason + ")"
	}
	for _, c := range s.ContainerStatuses {
		switch {
		case c.State.Running != nil:
			text += fmt.Sprintf(" runs since %s ready %t", c.State.Running.StartedAt.UTC().Format(time.TimeOnly), c.Ready)
		case c.State.Terminated != nil:
			text += fmt.Sprintf(" ended %d at %s", c.State.Terminated.ExitCode, c.State.Terminated.FinishedAt.UTC().Format(time.TimeOnly))
		case c.State.Waiting != nil:
			text += " waits " + c.State.Waiting.Reason
		}
	}
	return text
}

// ran is the status of a pod that was reported as running.
var ran = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
	Name: "a", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-time.Hour))}},
}}}

// TestEveryState checks each state of Zun with incomplete data, and unknown states.
func TestEveryState(t *testing.T) {
	old := now.Add(-time.Hour).Format(time.DateTime)
	for name, c := range map[string]struct {
		is    container
		live  bool
		want  string // after nothing
		after string // the expected status after the pod was reported as running
		ended bool
	}{
		"new":                       {is: container{Status: "Creating", CreatedAt: now.Format(time.DateTime)}, want: "Pending waits ContainerCreating", after: "Pending waits ContainerCreating"},
		"an image is pulled":        {is: container{Status: "Creating", TaskState: "image_pulling", CreatedAt: old}, want: "Pending waits ContainerCreating", after: "Pending waits ContainerCreating"},
		"never begun":               {is: container{Status: "Creating", CreatedAt: old}, want: "Failed(ZunStuck) waits ContainerCreating", after: "Failed(ZunStuck) waits ContainerCreating", ended: true},
		"created":                   {is: container{Status: "Created", StatusDetail: "Created"}, want: "Pending waits ContainerCreating", after: "Pending waits ContainerCreating"},
		"runs":                      {is: container{Status: "Running", StatusDetail: "Up 3 mins"}, want: "Running runs since 11:57:00 ready true", after: "Running runs since 11:00:00 ready true"},
		"runs for a moment":         {is: container{Status: "Running"}, want: "Running runs since 12:00:00 ready true", after: "Running runs since 11:00:00 ready true"},
		"paused":                    {is: container{Status: "Paused", StatusDetail: "Up 3 mins (paused)"}, want: "Running runs since 11:57:00 ready false", after: "Running runs since 11:00:00 ready false"},
		"ended":                     {is: container{Status: "Stopped", StatusDetail: "Exited(0) 5 seconds ago "}, want: "Succeeded ended 0 at 11:59:55", after: "Succeeded ended 0 at 11:59:55", ended: true},
		"failed":                    {is: container{Status: "Stopped", StatusDetail: "Exited(3) 2 hours ago "}, want: "Failed ended 3 at 10:00:00", after: "Failed ended 3 at 10:00:00", ended: true},
		"failed with an error":      {is: container{Status: "Stopped", StatusDetail: "Exited(127) 2 days ago (error)"}, want: "Failed ended 127 at 12:00:00", after: "Failed ended 127 at 12:00:00", ended: true},
		"ended just now":            {is: container{Status: "Stopped", StatusDetail: "Exited(1) None ago "}, want: "Failed ended 1 at 12:00:00", after: "Failed ended 1 at 12:00:00", ended: true},
		"killed":                    {is: container{Status: "Stopped", StatusDetail: "Exited(-1)  ago "}, want: "Failed ended -1 at 12:00:00", after: "Failed ended -1 at 12:00:00", ended: true},
		"stopped, not looked at":    {is: container{Status: "Stopped", StatusDetail: "Up 3 mins"}, want: "Pending waits ContainerCreating", after: "Running runs since 11:00:00 ready true"},
		"stopped, nobody knows how": {is: container{Status: "Stopped", StatusDetail: "Up 3 mins"}, live: true, want: "Failed waits ContainerStatusUnknown", after: "Failed waits ContainerStatusUnknown", ended: true},
		"an error":                  {is: container{Status: "Error", StatusReason: "no such image"}, want: "Failed(ZunFailed) waits ContainerStatusUnknown", after: "Failed(ZunFailed) waits ContainerStatusUnknown", ended: true},
		"dead":                      {is: container{Status: "Dead", StatusDetail: "Dead"}, want: "Failed(ZunFailed) waits ContainerStatusUnknown", after: "Failed(ZunFailed) waits ContainerStatusUnknown", ended: true},
		"deleted":                   {is: container{Status: "Deleted"}, want: "Failed(ZunFailed) waits ContainerStatusUnknown", after: "Failed(ZunFailed) waits ContainerStatusUnknown", ended: true},
		"restarting":                {is: container{Status: "Restarting"}, want: "Pending waits ContainerCreating", after: "Running runs since 11:00:00 ready true"},
		"rebuilding":                {is: container{Status: "Rebuilding"}, want: "Pending waits ContainerCreating", after: "Running runs since 11:00:00 ready true"},
		"deleting":                  {is: container{Status: "Deleting"}, want: "Pending waits ContainerCreating", after: "Running runs since 11:00:00 ready true"},
		"unknown":                   {is: container{Status: "Unknown"}, want: "Pending waits ContainerCreating", after: "Running runs since 11:00:00 ready true"},
		"of another release":        {is: container{Status: "Frozen", TaskState: "thawing"}, want: "Pending waits ContainerCreating", after: "Running runs since 11:00:00 ready true"},
		"none":                      {want: "Pending waits ContainerCreating", after: "Running runs since 11:00:00 ready true"},
	} {
		for _, told := range []bool{false, true} {
			pod := testPod(corev1.Container{})
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			want := c.want
			if told {
				pod.Status, want = ran, c.after
			}
			i := instance{container: c.is, at: now, live: c.live}
			if got := brief(i.podStatus(pod)); got != want {
				t.Errorf("%s, told before: %t: got %s, want %s", name, told, got, want)
			}
			if i.hasEnded() != c.ended {
				t.Errorf("%s: ended %t, want %t", name, i.hasEnded(), c.ended)
			}
		}
	}
}

// TestEveryStateOfCapsules: Zun never reports the end of a capsule's containers.
func TestEveryStateOfCapsules(t *testing.T) {
	for state, want := range map[string]string{
		"Creating": "Pending waits ContainerCreating waits ContainerCreating", "Running": "Running runs since 12:00:00 ready true runs since 12:00:00 ready true",
		"Stopped": "Running waits ContainerStatusUnknown waits ContainerStatusUnknown", "Error": "Failed(ZunFailed) waits ContainerStatusUnknown waits ContainerStatusUnknown",
		"Unknown": "Pending waits ContainerCreating waits ContainerCreating", "Pending": "Pending waits ContainerCreating waits ContainerCreating",
	} {
		i := instance{container: container{Status: state, Containers: []container{{Status: state}, {Status: state}}}, capsule: true, at: now}
		if got := brief(i.podStatus(testPod(corev1.Container{}, corev1.Container{}))); got != want {
			t.Errorf("%s: got %s, want %s", state, got, want)
		}
	}
}

func TestAddressesOfIPv4AreFirst(t *testing.T) {
	i := instance{container: container{Status: "Running", Addresses: map[string][]address{"b": {{"10.0.0.2", 4.0}}, "a": {{"fd00::1", 6.0}, {"10.0.0.1", 4.0}}}}, at: now}
	if got := fmt.Sprint(i.podStatus(testPod(corev1.Container{})).PodIPs); got != "[{10.0.0.1} {10.0.0.2} {fd00::1}]" {
		t.Errorf("got %s", got)
	}
}
