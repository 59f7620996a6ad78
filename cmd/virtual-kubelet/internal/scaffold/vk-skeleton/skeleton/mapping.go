// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// groupSpec is what the service takes.
type groupSpec struct {
	// ID is the UID of the pod: a pod of the same name is another group.
	ID types.UID
	// Node, Namespace and Name find the pod of a group again. A service that has tags keeps them there.
	Node, Namespace, Name string
	// Restart is always, on-failure or never.
	Restart string
	Want    []containerSpec
}

// containerSpec is a container as the service takes it.
type containerSpec struct {
	Name, Image string
	Command     []string // with its arguments; empty is that of the image
	Env         []string // as NAME=value
	CPU         int64    // in thousandths of a core; 0: not said
	Memory      int64    // in bytes; 0: not said
}

var restarts = map[corev1.RestartPolicy]string{
	corev1.RestartPolicyAlways: "always", corev1.RestartPolicyOnFailure: "on-failure", corev1.RestartPolicyNever: "never",
}

// groupOf is the group for a pod. The environment of the pod is resolved, and it asks for nothing that is not declared.
//
// FILL(mapping): say here what a request of your service has for each field. What it cannot have is an error of the kind
// invalid-input (errdefs.InvalidInputf), which ends the pod and tells its owner why.
func groupOf(pod *corev1.Pod) groupSpec {
	g := groupSpec{
		ID: pod.UID, Node: pod.Spec.NodeName, Namespace: pod.Namespace, Name: pod.Name, Restart: restarts[pod.Spec.RestartPolicy],
	}
	if g.Restart == "" {
		g.Restart = "always" // the default of the API
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		want := containerSpec{
			Name: c.Name, Image: c.Image, Command: slices.Concat(c.Command, c.Args),
			CPU: c.Resources.Requests.Cpu().MilliValue(), Memory: c.Resources.Requests.Memory().Value(),
		}
		for _, v := range c.Env {
			want.Env = append(want.Env, v.Name+"="+v.Value)
		}
		g.Want = append(g.Want, want)
	}
	return g
}
