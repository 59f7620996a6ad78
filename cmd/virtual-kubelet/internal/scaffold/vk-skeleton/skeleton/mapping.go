// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// groupSpec is the service's request for a group.
type groupSpec struct {
	Tags       map[string]string `json:"tags"`    // to find the pod of a group
	Restart    string            `json:"restart"` // always, on-failure or never
	Containers []containerSpec   `json:"containers"`
}

// containerSpec is the service's request for a container.
type containerSpec struct {
	Name     string   `json:"name"`
	Image    string   `json:"image"`
	Command  []string `json:"command"` // with its arguments; empty: the command of the image
	Env      []string `json:"env"`     // as NAME=value
	MilliCPU int64    `json:"milliCPU"`
	Memory   int64    `json:"memory"` // in bytes
}

var restarts = map[corev1.RestartPolicy]string{
	"": "always", corev1.RestartPolicyAlways: "always", corev1.RestartPolicyOnFailure: "on-failure", corev1.RestartPolicyNever: "never",
}

// groupOf returns the group for a pod. The environment of the pod is resolved, and the pod only needs declared features.
//
// FILL(mapping): map each field to a request of your service. This is a pure function: the same pod always gives the same request. For a setting that
// the service does not support, return an error of the kind invalid-input (errdefs.InvalidInputf). The pod then fails with that message.
func groupOf(in *service.Inputs) (groupSpec, error) {
	g := groupSpec{Tags: in.Tags, Restart: restarts[in.Pod.Spec.RestartPolicy]}
	for i := range in.Pod.Spec.Containers {
		c := in.Containers[in.Pod.Spec.Containers[i].Name]
		want := containerSpec{
			Name: c.Name, Image: c.Image, Command: slices.Concat(c.Command, c.Args),
			MilliCPU: c.Resources.Requests.Cpu().MilliValue(), Memory: c.Resources.Requests.Memory().Value(),
		}
		for _, v := range c.Env {
			want.Env = append(want.Env, v.Name+"="+v.Value)
		}
		g.Containers = append(g.Containers, want)
	}
	return g, nil
}
