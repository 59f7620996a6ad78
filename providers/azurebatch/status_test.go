// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/batch/azbatch"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/azurebatch/internal/task"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

func onePod() *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "i"}}}}
}

func aTask(state azbatch.TaskState, info azbatch.TaskExecutionInfo) azbatch.Task {
	return azbatch.Task{State: &state, ExecutionInfo: &info}
}

func failed(code string, exit *int32) azbatch.TaskExecutionInfo {
	return azbatch.TaskExecutionInfo{
		ExitCode: exit, FailureInfo: &azbatch.TaskFailureInfo{Category: new(azbatch.ErrorCategoryUserError), Code: &code, Message: new("because")},
	}
}

// saysRunning returns the status of a task whose container is running, and saysEnded the status of a task whose container has ended.
func saysRunning() *podjob.Status {
	return &podjob.Status{Host: "n", Pod: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "a", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
	}}}
}

func saysEnded(cause string) *podjob.Status {
	return &podjob.Status{Ended: true, Cause: cause, Pod: corev1.PodStatus{Phase: corev1.PodSucceeded}}
}

// TestEveryState checks the pod status for each state of its task, with and without a status of the task.
func TestEveryState(t *testing.T) {
	none := azbatch.TaskExecutionInfo{}
	for name, c := range map[string]struct {
		i              instance
		phase          corev1.PodPhase
		reason, detail string
	}{
		"active":                 {instance{task: aTask(azbatch.TaskStateActive, none), waits: ": 0 of 4 machines are idle"}, corev1.PodPending, "", "waits for a machine: 0 of 4"},
		"preparing":              {instance{task: aTask(azbatch.TaskStatePreparing, none)}, corev1.PodPending, "", "prepared"},
		"running, silent":        {instance{task: aTask(azbatch.TaskStateRunning, none)}, corev1.PodPending, "", "said nothing yet"},
		"unknown":                {instance{task: aTask("hibernating", none)}, corev1.PodPending, "", "hibernating, which this version does not know"},
		"none at all":            {instance{}, corev1.PodPending, "", ""},
		"running":                {instance{task: aTask(azbatch.TaskStateRunning, none), said: saysRunning()}, corev1.PodRunning, "", ""},
		"active after a list":    {instance{task: aTask(azbatch.TaskStateActive, none), said: saysRunning()}, corev1.PodRunning, "", ""},
		"Completed":              {instance{task: aTask("Completed", none), said: saysEnded("")}, corev1.PodSucceeded, "", ""},
		"running, ended":         {instance{task: aTask(azbatch.TaskStateRunning, none), said: saysEnded("")}, corev1.PodSucceeded, "", ""},
		"killed":                 {instance{task: aTask(azbatch.TaskStateCompleted, failed("TaskEnded", nil)), said: saysEnded("SIGTERM")}, corev1.PodFailed, "TaskEnded", "because"},
		"killed, running yet":    {instance{task: aTask(azbatch.TaskStateRunning, none), said: saysEnded("SIGTERM")}, corev1.PodFailed, "TaskEnded", "SIGTERM"},
		"completed, silent":      {instance{task: aTask(azbatch.TaskStateCompleted, azbatch.TaskExecutionInfo{ExitCode: new(int32(0))})}, corev1.PodFailed, "TaskEnded", "did not say how"},
		"completed, no info":     {instance{task: azbatch.Task{State: new(azbatch.TaskStateCompleted)}}, corev1.PodFailed, "TaskEnded", "not known"},
		"completed, cut":         {instance{task: aTask(azbatch.TaskStateCompleted, failed("FailureExitCode", new(int32(137)))), said: saysRunning()}, corev1.PodFailed, "TaskFailed", "exit code 137"},
		"too long":               {instance{task: aTask(azbatch.TaskStateCompleted, failed("TaskEnded", new(int32(wallClock))))}, corev1.PodFailed, "DeadlineExceeded", "longer"},
		"a later run":            {instance{task: aTask(azbatch.TaskStateCompleted, failed("FailureExitCode", new(int32(task.ExitClaimed))))}, corev1.PodFailed, "NodeLost", "again"},
		"lost":                   {instance{task: aTask(azbatch.TaskStateActive, none), said: saysRunning(), lost: reasonNodeLost}, corev1.PodFailed, "NodeLost", "again"},
		"preempted":              {instance{task: aTask(azbatch.TaskStateActive, none), said: saysRunning(), lost: reasonPreempted}, corev1.PodFailed, "Preempted", "spot"},
		"a later run, but ended": {instance{task: aTask(azbatch.TaskStateCompleted, failed("FailureExitCode", new(int32(task.ExitClaimed)))), said: saysEnded("")}, corev1.PodSucceeded, "", ""},
		"a new failure code":     {instance{task: aTask(azbatch.TaskStateCompleted, failed("SomethingNew", nil))}, corev1.PodFailed, "TaskFailed", "SomethingNew: because"},
	} {
		t.Run(name, func(t *testing.T) {
			s := statusOf(onePod(), c.i)
			if s.Phase != c.phase || s.Reason != c.reason || !strings.Contains(s.Message, c.detail) {
				t.Errorf("got %s %s %q, want %s %s %q", s.Phase, s.Reason, s.Message, c.phase, c.reason, c.detail)
			}
			if over := c.phase == corev1.PodFailed || c.phase == corev1.PodSucceeded; hasEnded(c.i) != over {
				t.Errorf("ended is %t", hasEnded(c.i))
			}
			for _, k := range s.ContainerStatuses {
				if c.phase == corev1.PodFailed && k.State.Running != nil {
					t.Errorf("container %s runs in a pod that has failed", k.Name)
				}
			}
		})
	}
}

// TestEveryFailureCode: for each code of a failed task, the pod fails with a remedy.
func TestEveryFailureCode(t *testing.T) {
	for code, f := range failures {
		s := statusOf(onePod(), instance{task: aTask(azbatch.TaskStateCompleted, failed(code, nil))})
		if s.Phase != corev1.PodFailed || s.Reason != f.reason || !strings.Contains(s.Message, code+": because") || !strings.HasSuffix(s.Message, f.do) {
			t.Errorf("%s: got %s %s %q", code, s.Phase, s.Reason, s.Message)
		}
	}
}

// TestEveryStateOfMachines: the message of a waiting pod has each state of the machines.
func TestEveryStateOfMachines(t *testing.T) {
	one := func() *int32 { return new(int32(1)) }
	text := countsText([]azbatch.PoolNodeCounts{{Dedicated: &azbatch.NodeCounts{
		Creating: one(), Deallocated: one(), Deallocating: one(), Idle: one(), LeavingPool: one(), Offline: one(), Preempted: one(), Rebooting: one(), Reimaging: one(),
		Running: one(), StartTaskFailed: one(), Starting: one(), Unknown: one(), Unusable: one(), UpgradingOS: one(), WaitingForStartTask: one(), Total: new(int32(16)),
	}, LowPriority: &azbatch.NodeCounts{Idle: one(), Running: one(), Total: new(int32(2))}}})
	if !strings.HasPrefix(text, "2 of 18 machines are idle, ") || !strings.Contains(text, "2 running") {
		t.Error(text)
	}
	for _, state := range azbatch.PossibleNodeStateValues() {
		if !strings.Contains(text, string(state)) {
			t.Errorf("%s is not in %q", state, text)
		}
	}
}
