// SPDX-License-Identifier: Apache-2.0

package capability_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

// A provider declares the features of its backend, and gets no pods that need more.
func Example() {
	declared := capability.Only(capability.InitContainers, capability.EmptyDir).
		Lacks("the cloud has no network of the machine", capability.HostNetwork)

	pod := &corev1.Pod{Spec: corev1.PodSpec{HostNetwork: true, InitContainers: []corev1.Container{{Name: "setup"}}}}
	fmt.Println(capability.Message(declared.Check(pod)))
	// Output:
	// this node cannot run the pod: spec.hostNetwork: the cloud has no network of the machine
}
