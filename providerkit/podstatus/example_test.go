// SPDX-License-Identifier: Apache-2.0

package podstatus_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// The states that a service reports for its containers become the status that a kubelet would report.
func Example() {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "work", Image: "busybox"}, {Name: "log", Image: "busybox"}},
	}}
	code := int32(3)
	status := podstatus.Status(pod, podstatus.Pod{Containers: []podstatus.Container{
		{Name: "log", State: podstatus.Running, Run: podstatus.Run{ID: "cloud://2"}},
		{Name: "work", State: podstatus.Exited, Run: podstatus.Run{ID: "cloud://1", ExitCode: &code}},
	}})
	fmt.Println(status.Phase)
	for _, c := range status.ContainerStatuses {
		fmt.Println(c.Name, c.Ready, c.State.Terminated != nil)
	}
	// Output:
	// Running
	// work false true
	// log true false
}
