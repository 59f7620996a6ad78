// SPDX-License-Identifier: Apache-2.0

package criconfig

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Labels of sandboxes and containers, the same as a kubelet's, because tools use them.
const (
	LabelPodName       = "io.kubernetes.pod.name"
	LabelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	LabelContainerName = "io.kubernetes.container.name"
	// LabelNode is the node of a sandbox or container: one runtime may serve several nodes, and also a kubelet.
	LabelNode = "virtual-kubelet.io/node"
)

// Annotations of containers.
const (
	AnnotationHash                     = "io.kubernetes.container.hash"
	AnnotationRestartCount             = "io.kubernetes.container.restartCount"
	AnnotationTerminationMessagePath   = "io.kubernetes.container.terminationMessagePath"
	AnnotationTerminationMessagePolicy = "io.kubernetes.container.terminationMessagePolicy"
	AnnotationContainerPorts           = "io.kubernetes.container.ports"
	AnnotationPreStop                  = "io.kubernetes.container.preStopHandler"
	AnnotationGracePeriod              = "io.kubernetes.pod.terminationGracePeriod"
	// AnnotationResources are the resources in the spec at the creation of a container.
	AnnotationResources = "virtual-kubelet.io/resources"
	// AnnotationSpec is the part of a pod's spec in its sandbox; see Skeleton.
	AnnotationSpec = "virtual-kubelet.io/spec"
)

// podLabels returns the labels of the sandbox: the pod's own, and the identifying labels.
func (s Settings) podLabels(pod *corev1.Pod) map[string]string {
	labels := maps.Clone(pod.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, s.identityLabels(pod))
	return labels
}

// identityLabels returns the labels by which a sandbox or container is found.
func (s Settings) identityLabels(pod *corev1.Pod) map[string]string {
	return map[string]string{
		LabelPodName: pod.Name, LabelPodNamespace: pod.Namespace, LabelPodUID: string(pod.UID), LabelNode: s.Node,
	}
}

// containerAnnotations returns the data of a container for use without its spec: its inputs, how to stop it, and the location of its termination
// message.
func containerAnnotations(in Instance) map[string]string {
	c := in.Container
	a := map[string]string{
		AnnotationHash:                     in.Hash,
		AnnotationRestartCount:             strconv.FormatUint(uint64(in.Attempt), 10),
		AnnotationTerminationMessagePath:   c.TerminationMessagePath,
		AnnotationTerminationMessagePolicy: string(c.TerminationMessagePolicy),
	}
	if grace := in.Pod.Spec.TerminationGracePeriodSeconds; grace != nil {
		a[AnnotationGracePeriod] = strconv.FormatInt(*grace, 10)
	}
	if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
		annotateJSON(a, AnnotationPreStop, c.Lifecycle.PreStop)
	}
	if len(c.Ports) > 0 {
		annotateJSON(a, AnnotationContainerPorts, c.Ports)
	}
	if in.Spec != nil {
		annotateJSON(a, AnnotationResources, in.Spec)
	}
	return a
}

// annotateJSON writes a value as JSON.
func annotateJSON(a map[string]string, key string, value any) {
	if raw, err := json.Marshal(value); err == nil { // API types can always be marshaled
		a[key] = string(raw)
	}
}

// LogDirectory is the directory of the logs of a pod, as tools expect it.
func (s Settings) LogDirectory(pod *corev1.Pod) string {
	return filepath.Join(s.LogRoot, pod.Namespace+"_"+pod.Name+"_"+string(pod.UID))
}

// LogPath is the log of one instance of a container, below the directory of its pod.
func LogPath(container string, attempt uint32) string {
	return filepath.Join(container, strconv.FormatUint(uint64(attempt), 10)+".log")
}
