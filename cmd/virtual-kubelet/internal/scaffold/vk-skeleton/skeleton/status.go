// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// podOf is the pod of a group as the API shows it. spec is the pod in the API server, nil if it is not there any more.
func podOf(g group, spec *corev1.Pod) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name, UID: g.ID}}
	if spec != nil && spec.UID == g.ID {
		pod = spec.DeepCopy()
	} else {
		pod.Spec.NodeName = g.Node
		for _, c := range g.Want {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image})
		}
	}
	pod.Status = podstatus.Status(pod, observed(g))
	return pod
}

// observed is what the service says of a group, for the kit to make the status of a pod of.
//
// FILL(status): give every state of your service a line here and in the table of status_test.go, unknown ones too. What is never
// invented: an exit code that nobody knows is not 0.
func observed(g group) podstatus.Pod {
	seen := podstatus.Pod{StartedAt: g.Created, Ended: len(g.Containers) > 0}
	if g.Address != "" {
		seen.IPs = []string{g.Address}
	}
	for _, c := range g.Containers {
		seen.Ended = seen.Ended && c.State == stateStopped // what waits for its next run has not ended
		seen.Containers = append(seen.Containers, observedContainer(c))
	}
	return seen
}

func observedContainer(c container) podstatus.Container {
	seen := podstatus.Container{Name: c.Name, Image: c.Image, ImageID: c.Image, Restarts: c.Restarts}
	if c.Last != nil {
		seen.Last = observedRun(*c.Last)
	}
	switch c.State {
	case stateRunning:
		seen.State, seen.Run = podstatus.Running, *observedRun(c.Run)
	case stateStopped:
		seen.State, seen.Run = podstatus.Exited, *observedRun(c.Run)
	case stateWaiting:
		seen.Reason, seen.Message, seen.Last = "CrashLoopBackOff", "the container waits for its next run", observedRun(c.Run)
	case stateCreating:
		seen.Reason = "ContainerCreating"
	default:
		seen.Reason, seen.Message = "Unknown", "skeleton says that the container is "+c.State
	}
	return seen
}

func observedRun(r run) *podstatus.Run {
	return &podstatus.Run{ID: "skeleton://" + r.ID, StartedAt: r.Started, FinishedAt: r.Finished, ExitCode: r.ExitCode}
}
