// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
)

// podEvent records an event about a pod.
func (r *Runtime) podEvent(pod *corev1.Pod, eventType, reason, message string) {
	if r.isStopping() {
		return
	}
	r.cfg.Recorder.Event(podReference(pod), eventType, reason, message)
}

// containerEvent records an event about a container of a pod.
func (r *Runtime) containerEvent(pod *corev1.Pod, container, eventType, reason, message string) {
	if r.isStopping() {
		return
	}
	ref := podReference(pod)
	if container == "" { // the image of a volume
		r.cfg.Recorder.Event(ref, eventType, reason, message)
		return
	}
	ref.FieldPath = fieldPath(pod, container)
	r.cfg.Recorder.Event(ref, eventType, reason, message)
}

// isStopping reports whether the node stops: then failures come from the stop, and say nothing about a pod.
func (r *Runtime) isStopping() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ctx == nil || r.ctx.Err() != nil
}

func podReference(pod *corev1.Pod) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
	}
}

// fieldPath returns the path of a container in its pod.
func fieldPath(pod *corev1.Pod, container string) string {
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == container {
			return fmt.Sprintf("spec.initContainers{%s}", container)
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == container {
			return fmt.Sprintf("spec.ephemeralContainers{%s}", container)
		}
	}
	return fmt.Sprintf("spec.containers{%s}", container)
}

// errorText returns the text of an error of the runtime, without the words of the wire.
func errorText(err error) string {
	s, _ := status.FromError(err)
	return s.Message()
}

// replaceID removes the ID of an instance from a text, so that events about a container are alike.
func replaceID(text, id, name string) string {
	if id == "" {
		return text
	}
	return strings.ReplaceAll(text, id, name)
}
