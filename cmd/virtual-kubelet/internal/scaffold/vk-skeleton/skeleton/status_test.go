// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func code(n int32) *int32 { return &n }

func TestStatusOfEveryState(t *testing.T) {
	begun := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	running, creating := container{State: stateRunning}, container{State: stateCreating}
	stopped := func(exit *int32) container { return container{State: stateStopped, Run: run{ExitCode: exit}} }
	for name, tt := range map[string]struct {
		states []container
		phase  corev1.PodPhase
		state  string // of the first container
		exit   int32
	}{
		"nothing yet":       {[]container{{}}, corev1.PodPending, "Unknown", 0},
		"creating":          {[]container{creating}, corev1.PodPending, "ContainerCreating", 0},
		"running":           {[]container{running}, corev1.PodRunning, "running", 0},
		"one of two":        {[]container{running, creating}, corev1.PodPending, "running", 0},
		"one has ended":     {[]container{stopped(code(0)), running}, corev1.PodRunning, "Completed", 0},
		"waiting":           {[]container{{State: stateWaiting, Run: run{ExitCode: code(1)}}}, corev1.PodRunning, "CrashLoopBackOff", 0},
		"succeeded":         {[]container{stopped(code(0))}, corev1.PodSucceeded, "Completed", 0},
		"failed":            {[]container{stopped(code(3))}, corev1.PodFailed, "Error", 3},
		"one failed":        {[]container{stopped(code(0)), stopped(code(3))}, corev1.PodFailed, "Completed", 0},
		"nobody knows":      {[]container{stopped(nil)}, corev1.PodFailed, "ContainerStatusUnknown", 0},
		"a state of no one": {[]container{{State: "hibernating"}}, corev1.PodPending, "Unknown", 0},
	} {
		t.Run(name, func(t *testing.T) {
			g, pod := group{Created: begun, Address: "192.0.2.1", Containers: tt.states}, &corev1.Pod{}
			for i := range g.Containers {
				g.Containers[i].Name = fmt.Sprint("c", i)
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: g.Containers[i].Name})
			}
			s := (&driver{}).Status(pod, g)
			if s.Phase != tt.phase || s.PodIP != "192.0.2.1" || !s.StartTime.Time.Equal(begun) {
				t.Errorf("got %s, %s, %s, want the phase %s", s.Phase, s.PodIP, s.StartTime, tt.phase)
			}
			state, exit := describe(s.ContainerStatuses[0].State)
			if state != tt.state || exit != tt.exit {
				t.Errorf("the container is %s %d, want %s %d", state, exit, tt.state, tt.exit)
			}
		})
	}
}

func describe(s corev1.ContainerState) (state string, exit int32) {
	switch {
	case s.Terminated != nil:
		return s.Terminated.Reason, s.Terminated.ExitCode
	case s.Waiting != nil:
		return s.Waiting.Reason, 0
	}
	return "running", 0
}
