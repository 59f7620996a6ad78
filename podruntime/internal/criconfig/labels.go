// SPDX-License-Identifier: Apache-2.0

package criconfig

// Labels of sandboxes and containers: those of a kubelet, which tools look for.
const (
	LabelPodName       = "io.kubernetes.pod.name"
	LabelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	LabelContainerName = "io.kubernetes.container.name"
	// LabelNode is the node that a sandbox is for: one runtime may serve several nodes.
	LabelNode = "virtual-kubelet.io/node"
)

// Annotations of containers.
const (
	AnnotationHash                     = "io.kubernetes.container.hash"
	AnnotationRestartCount             = "io.kubernetes.container.restartCount"
	AnnotationTerminationMessagePath   = "io.kubernetes.container.terminationMessagePath"
	AnnotationTerminationMessagePolicy = "io.kubernetes.container.terminationMessagePolicy"
	AnnotationContainerPorts           = "io.kubernetes.container.ports"
	AnnotationPodGracePeriod           = "io.kubernetes.pod.terminationGracePeriod"
)
