// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons in the status of a pod that was deleted. Users and tests look for them.
const (
	reasonPodDeleted       = "MockProviderPodDeleted"
	reasonContainerDeleted = "MockProviderPodContainerDeleted"
)

// containerIDScheme begins the ID of every container of this provider.
const containerIDScheme = "mock://"

// statusOf writes the status of pod as a kubelet does, at the moment m of its life.
func statusOf(pod *corev1.Pod, created time.Time, m moment, hostIP, podIP string, now time.Time) corev1.PodStatus {
	status := corev1.PodStatus{
		Phase:     phaseOf(m),
		StartTime: stamp(created),
		QOSClass:  pod.Status.QOSClass,
	}
	if hostIP != "" {
		status.HostIP, status.HostIPs = hostIP, []corev1.HostIP{{IP: hostIP}}
	}
	if m.stage != creating && podIP != "" {
		status.PodIP, status.PodIPs = podIP, []corev1.PodIP{{IP: podIP}}
	}
	if m.stopped {
		status.Reason, status.Message = reasonPodDeleted, "The pod was deleted"
	}
	status.Conditions = conditionsOf(pod, created, m, now)
	for i := range pod.Spec.InitContainers {
		status.InitContainerStatuses = append(status.InitContainerStatuses, initStatus(pod, &pod.Spec.InitContainers[i], created, m, now))
	}
	for i := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, containerStatus(pod, &pod.Spec.Containers[i], m, now))
	}
	return status
}

func phaseOf(m moment) corev1.PodPhase {
	switch {
	case m.stage == creating:
		return corev1.PodPending
	case m.stage != exited:
		return corev1.PodRunning
	case m.exitCode == 0:
		return corev1.PodSucceeded
	}
	return corev1.PodFailed
}

func conditionsOf(pod *corev1.Pod, created time.Time, m moment, now time.Time) []corev1.PodCondition {
	condition := func(kind corev1.PodConditionType, is bool, since time.Time, reason string) corev1.PodCondition {
		c := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(since)}
		if !is {
			c.Status, c.Reason = corev1.ConditionFalse, reason
		}
		return c
	}
	started := m.stage != creating
	sandboxSince, readySince, initialized := created, created, created
	if started {
		sandboxSince, readySince = m.begun, m.ready
	}
	if started && len(pod.Spec.InitContainers) > 0 {
		initialized = m.begun
	}
	ready := readyAt(m, now)
	reason := "ContainersNotReady"
	switch {
	case m.stage == exited:
		readySince, sandboxSince, reason = m.finished, m.finished, "PodCompleted"
		if m.exitCode != 0 {
			reason = "PodFailed"
		}
	case m.stage == restarting:
		readySince = m.finished
	case started && !ready:
		readySince = m.started
	}
	return []corev1.PodCondition{
		condition(corev1.PodReadyToStartContainers, started && m.stage != exited, sandboxSince, ""),
		condition(corev1.PodInitialized, started || len(pod.Spec.InitContainers) == 0, initialized, "ContainersNotInitialized"),
		condition(corev1.PodReady, ready, readySince, reason),
		condition(corev1.ContainersReady, ready, readySince, reason),
		condition(corev1.PodScheduled, true, created, ""),
	}
}

func readyAt(m moment, now time.Time) bool {
	return m.stage == running && !now.Before(m.ready)
}

func containerStatus(pod *corev1.Pod, c *corev1.Container, m moment, now time.Time) corev1.ContainerStatus {
	started := m.stage == running
	status := corev1.ContainerStatus{
		Name:         c.Name,
		Image:        c.Image,
		RestartCount: m.run,
		Started:      &started,
		Ready:        readyAt(m, now),
	}
	if m.stage == creating {
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
		return status
	}
	status.ImageID = imageID(c.Image)
	status.ContainerID = containerID(pod, c.Name, m.run)
	if m.last != nil {
		status.LastTerminationState.Terminated = terminated(pod, c, *m.last)
	}
	switch m.stage {
	case running:
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(m.started)}
	case restarting:
		status.State.Waiting = &corev1.ContainerStateWaiting{
			Reason:  "CrashLoopBackOff",
			Message: fmt.Sprintf("container %s starts again at %s", c.Name, m.next.UTC().Format(time.RFC3339)),
		}
		status.LastTerminationState.Terminated = terminated(pod, c, m)
	case exited:
		status.State.Terminated = terminated(pod, c, m)
	}
	return status
}

// initStatus is the status of an init container: it completes at the moment the
// others start, unless it is a sidecar, which lives as long as they do.
func initStatus(pod *corev1.Pod, c *corev1.Container, created time.Time, m moment, now time.Time) corev1.ContainerStatus {
	if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
		return containerStatus(pod, c, m, now)
	}
	if m.begun.IsZero() {
		return containerStatus(pod, c, m, now)
	}
	done := moment{stage: exited, started: created, finished: m.begun}
	status := containerStatus(pod, c, done, now)
	status.Ready = true
	return status
}

func terminated(pod *corev1.Pod, c *corev1.Container, m moment) *corev1.ContainerStateTerminated {
	state := &corev1.ContainerStateTerminated{
		ExitCode:    m.exitCode,
		Reason:      "Completed",
		StartedAt:   metav1.NewTime(m.started),
		FinishedAt:  metav1.NewTime(m.finished),
		ContainerID: containerID(pod, c.Name, m.run),
	}
	switch {
	case m.stopped:
		state.Reason = reasonContainerDeleted
	case m.exitCode != 0:
		state.Reason = "Error"
	}
	if m.stopped && m.started.IsZero() {
		state.Message = "the pod was deleted before the container was started"
	}
	return state
}

// containerID names one run of a container; it is the same after a restart of
// the process.
func containerID(pod *corev1.Pod, container string, run int32) string {
	return containerIDScheme + digest(fmt.Sprintf("%s/%s/%s/%s/%d", pod.UID, pod.Namespace, pod.Name, container, run))
}

func imageID(image string) string { return image + "@sha256:" + digest(image) }

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func stamp(t time.Time) *metav1.Time {
	m := metav1.NewTime(t)
	return &m
}
