// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/batch/azbatch"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providers/azurebatch/internal/task"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/pack"
)

// instance is the known state of a pod at one time.
type instance struct {
	pod   identity.Pod
	task  azbatch.Task
	said  *podjob.Status // nil: the task has written no status
	lost  string         // the reason of the pod if its task runs again
	waits string         // why tasks of the pool wait
}

// Reasons of pods that did not end by themselves.
const (
	reasonNodeLost  = "NodeLost"
	reasonPreempted = "Preempted"
	reasonDeadline  = "DeadlineExceeded"
	reasonFailed    = "TaskFailed"
	reasonEnded     = "TaskEnded"
)

// failure has the reason of a pod and the remedy for an error code of a failed task.
type failure struct{ reason, do string }

// failures maps the codes of failureInfo. See "Task Failure Information Codes" of the REST reference of Batch, 2026-11-28.
var failures = map[string]failure{
	"ApplicationPackageError":       {reasonFailed, "look at the application packages of the pool"},
	"BlobAccessDenied":              {"BlobAccessDenied", "give storage.identity the role Storage Blob Data Contributor on the container"},
	"BlobDownloadMiscError":         {"BlobDownloadFailed", "look at the storage account"},
	"BlobDownloadTimedOut":          {"BlobDownloadFailed", "look at the way from the pool to the storage account"},
	"BlobNotFound":                  {"BlobNotFound", "a blob of the pod was removed"},
	"CommandLaunchFailed":           {reasonFailed, "look at program: it is one for another machine"},
	"CommandProgramNotFound":        {reasonFailed, "look at program: it is one for another machine"},
	"DiskFull":                      {"DiskFull", "take machines with a larger disk"},
	"ResourceDirectoryCreateFailed": {reasonFailed, "look at the disk of the machine"},
	"ResourceFileCreateFailed":      {reasonFailed, "look at the disk of the machine"},
	"ResourceFileWriteFailed":       {reasonFailed, "look at the disk of the machine"},
	"TaskEnded":                     {reasonEnded, ""},
}

// wallClock is the exit code of a task after its maxWallClockTime: 0xC000013A, from Batch's documentation of tasks, 2026-01-12.
const wallClock = -1073741510

// claimedBefore returns the reason of a pod if the last run of its task did nothing, because an earlier run has claimed the pod; otherwise "".
func claimedBefore(t azbatch.Task) string {
	if info := t.ExecutionInfo; isState(t, azbatch.TaskStateCompleted) && info != nil && valueOf(info.ExitCode) == task.ExitClaimed {
		return reasonNodeLost
	}
	return ""
}

// hasBegun reports whether the current run of a task has started the pod of a status, which means that both are on the same machine. Another run on
// this machine finds the claim of the pod, and ends.
func hasBegun(t azbatch.Task, said *podjob.Status) bool {
	runs := isState(t, azbatch.TaskStateRunning) || isState(t, azbatch.TaskStateCompleted) && claimedBefore(t) == ""
	return runs && t.NodeInfo != nil && valueOf(t.NodeInfo.NodeID) == said.Host
}

func isState(t azbatch.Task, s azbatch.TaskState) bool {
	return strings.EqualFold(string(valueOf(t.State)), string(s))
}

// hasEnded reports whether no process of a pod is known to run.
func hasEnded(i instance) bool {
	return i.said != nil && i.said.Ended || isState(i.task, azbatch.TaskStateCompleted) || i.lost != ""
}

// statusOf returns the status of a pod from its task and the status written by the task.
func statusOf(pod *corev1.Pod, i instance) corev1.PodStatus {
	reason, message := endReason(i)
	switch {
	case i.said != nil && i.said.Ended && i.said.Cause == "":
		return i.said.Pod
	case i.said != nil && i.said.Ended: // Batch ended the task, and the containers have a final status
		s := *i.said.Pod.DeepCopy()
		if reason == "" {
			reason, message = reasonEnded, "Batch has ended the task by "+i.said.Cause
		}
		s.Phase, s.Reason, s.Message = corev1.PodFailed, reason, message
		return s
	case reason != "":
		return podstatus.Status(pod, podstatus.Pod{
			StartedAt: valueOf(i.task.CreationTime), Ended: true, Failed: true, Reason: reason, Message: message, Containers: pack.Cut(i.said, message),
		})
	case i.said != nil:
		return i.said.Pod
	}
	s := podstatus.Status(pod, podstatus.Pod{StartedAt: valueOf(i.task.CreationTime)})
	switch {
	case isState(i.task, azbatch.TaskStateActive):
		s.Message = "the task waits for a machine" + i.waits
	case isState(i.task, azbatch.TaskStatePreparing):
		s.Message = "the task is prepared on a machine"
	case isState(i.task, azbatch.TaskStateRunning):
		s.Message = "the task has begun, and its program has said nothing yet"
	default:
		s.Message = fmt.Sprintf("the task is %s, which this version does not know", valueOf(i.task.State))
	}
	return s
}

// endReason returns the reason of a pod that has ended without a final status, or "".
func endReason(i instance) (reason, message string) {
	info := i.task.ExecutionInfo
	switch {
	case i.lost == reasonPreempted:
		return i.lost, "Batch has taken its spot machine away, and would run the pod again on another one"
	case i.lost != "", claimedBefore(i.task) != "":
		return reasonNodeLost, "its machine was lost or started again, and Batch would run the pod again"
	case !isState(i.task, azbatch.TaskStateCompleted):
		return "", ""
	case info == nil:
		return reasonEnded, "the task has ended, and how is not known"
	case valueOf(info.ExitCode) == wallClock:
		return reasonDeadline, "the task was there longer than Batch lets one be"
	case info.FailureInfo == nil:
		return reasonEnded, fmt.Sprintf("the task has ended with the exit code %d, and its program did not say how the pod ended", valueOf(info.ExitCode))
	}
	f, known := failures[valueOf(info.FailureInfo.Code)]
	if !known {
		f = failure{reasonFailed, ""}
	}
	message = fmt.Sprintf("the task has failed: %s %s: %s", strings.ToLower(string(valueOf(info.FailureInfo.Category))), valueOf(info.FailureInfo.Code), valueOf(info.FailureInfo.Message))
	for _, detail := range info.FailureInfo.Details {
		message += ": " + valueOf(detail.Name) + " " + valueOf(detail.Value)
	}
	if info.ExitCode != nil {
		message += fmt.Sprintf(": exit code %d", *info.ExitCode)
	}
	if f.do != "" {
		message += ": " + f.do
	}
	return f.reason, message
}
