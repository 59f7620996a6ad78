// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// Reasons in the status of a deleted pod. Users and tests look for them.
const (
	reasonPodDeleted       = "MockProviderPodDeleted"
	reasonContainerDeleted = "MockProviderPodContainerDeleted"
)

// containerIDScheme begins the ID of every container of this provider.
const containerIDScheme = "mock://"

// statusOf writes the status of pod as a kubelet does, at the moment m of its life.
func statusOf(pod *corev1.Pod, created time.Time, m moment, hostIP, podIP string, now time.Time) corev1.PodStatus {
	seen := podstatus.Pod{StartedAt: created, Ended: m.stage == exited}
	if hostIP != "" {
		seen.HostIPs = []string{hostIP}
	}
	if m.stage != creating && podIP != "" {
		seen.IPs = []string{podIP}
	}
	if m.stopped {
		seen.Reason, seen.Message = reasonPodDeleted, "The pod was deleted"
	}
	for i := range pod.Spec.InitContainers {
		seen.Containers = append(seen.Containers, initContainer(pod, &pod.Spec.InitContainers[i], created, m, now))
	}
	for i := range pod.Spec.Containers {
		seen.Containers = append(seen.Containers, observedContainer(pod, &pod.Spec.Containers[i], m, now))
	}
	status := podstatus.Status(pod, seen)
	status.QOSClass = pod.Status.QOSClass
	status.Conditions = conditionsOf(pod, created, m, now)
	return status
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

func observedContainer(pod *corev1.Pod, c *corev1.Container, m moment, now time.Time) podstatus.Container {
	ready := readyAt(m, now)
	seen := podstatus.Container{Name: c.Name, Restarts: m.run, Ready: &ready}
	if m.stage == creating {
		seen.Reason = "ContainerCreating"
		return seen
	}
	seen.ImageID = imageID(c.Image)
	if m.last != nil {
		seen.Last = endedRun(pod, c, *m.last)
	}
	switch m.stage {
	case running:
		seen.State, seen.Run = podstatus.Running, podstatus.Run{ID: containerID(pod, c.Name, m.run), StartedAt: m.started}
	case restarting:
		seen.Reason = "CrashLoopBackOff"
		seen.Message = fmt.Sprintf("container %s starts again at %s", c.Name, m.next.UTC().Format(time.RFC3339))
		seen.Last = endedRun(pod, c, m)
	case exited:
		seen.State, seen.Run = podstatus.Exited, *endedRun(pod, c, m)
	}
	return seen
}

// initContainer returns the status of an init container. An init container completes when the others start,
// unless it is a sidecar. A sidecar lives as long as the others.
func initContainer(pod *corev1.Pod, c *corev1.Container, created time.Time, m moment, now time.Time) podstatus.Container {
	if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways || m.begun.IsZero() {
		return observedContainer(pod, c, m, now)
	}
	return observedContainer(pod, c, moment{stage: exited, started: created, finished: m.begun}, now)
}

// endedRun is how a run ended.
func endedRun(pod *corev1.Pod, c *corev1.Container, m moment) *podstatus.Run {
	r := &podstatus.Run{ID: containerID(pod, c.Name, m.run), StartedAt: m.started, FinishedAt: m.finished, ExitCode: &m.exitCode}
	if m.stopped {
		r.Reason = reasonContainerDeleted
	}
	if m.stopped && m.started.IsZero() {
		r.Message = "the pod was deleted before the container was started"
	}
	return r
}

// containerID names one run of a container; it is the same after a restart of
// the process.
func containerID(pod *corev1.Pod, container string, run int32) string {
	return containerIDScheme + hexDigest(fmt.Sprintf("%s/%s/%s/%s/%d", pod.UID, pod.Namespace, pod.Name, container, run))
}

func imageID(image string) string { return image + "@sha256:" + hexDigest(image) }

func hexDigest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
