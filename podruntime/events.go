// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/volumes"
)

// events records events about the pods and the node, until the node stops.
type events struct {
	recorder   EventRecorder
	node       string
	isStopping func() bool
}

// recordPod records an event about a pod.
func (e events) recordPod(pod *corev1.Pod, eventType, reason, message string) {
	e.record(podReference(pod), eventType, reason, message)
}

// recordContainer records an event about a container of a pod.
func (e events) recordContainer(pod *corev1.Pod, container, eventType, reason, message string) {
	ref := podReference(pod)
	if container != "" { // otherwise the event is about the image of a volume
		ref.FieldPath = fieldPath(pod, container)
	}
	e.record(ref, eventType, reason, message)
}

// recordMounts records the volumes of a pod whose setup failed.
func (e events) recordMounts(pod *corev1.Pod, err error) {
	var failed *volumes.Error
	if !errors.As(err, &failed) {
		e.recordPod(pod, corev1.EventTypeWarning, reasonVolumes, err.Error())
		return
	}
	for _, one := range failed.Volumes {
		e.recordPod(pod, corev1.EventTypeWarning, reasonVolumes, one.Error())
	}
}

// recordNode records an event about the node.
func (e events) recordNode(eventType, reason, message string) {
	e.record(&corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: e.node, UID: types.UID(e.node)}, eventType, reason, message)
}

func (e events) record(about *corev1.ObjectReference, eventType, reason, message string) {
	if !e.isStopping() {
		e.recorder.Event(about, eventType, reason, message)
	}
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

// errorText returns the text of an error of the runtime, without the gRPC prefix.
func errorText(err error) string {
	s, _ := status.FromError(err)
	return s.Message()
}

// replaceID removes the ID of an instance from a text, so that events about a container can be aggregated.
func replaceID(text, id, name string) string {
	if id == "" {
		return text
	}
	return strings.ReplaceAll(text, id, name)
}
