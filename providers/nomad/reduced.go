// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"encoding/json"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// reduced is what a job remembers of a pod's spec: enough for its status after a restart.
type reduced struct {
	Init        []reducedContainer   `json:"i,omitempty"`
	Containers  []reducedContainer   `json:"c"`
	Restart     corev1.RestartPolicy `json:"r,omitempty"`
	HostNetwork bool                 `json:"h,omitempty"`
}

type reducedContainer struct {
	Name    string `json:"n"`
	Image   string `json:"i,omitempty"`
	Sidecar bool   `json:"s,omitempty"`
}

func reduce(s *corev1.PodSpec) reduced {
	r := reduced{Restart: s.RestartPolicy, HostNetwork: s.HostNetwork}
	for i := range s.InitContainers {
		c := &s.InitContainers[i]
		r.Init = append(r.Init, reducedContainer{Name: c.Name, Image: c.Image, Sidecar: isSidecar(c)})
	}
	for i := range s.Containers {
		r.Containers = append(r.Containers, reducedContainer{Name: s.Containers[i].Name, Image: s.Containers[i].Image})
	}
	return r
}

// podOf is the pod that a job of the owner is for, as far as the job tells; nil if it is another's.
func (o owner) podOf(job *nomadapi.JobListStub) *corev1.Pod {
	m := job.Meta
	if m[metaCluster] != o.cluster || m[metaNode] != o.node || job.ID != o.jobID(m[metaUID]) {
		return nil
	}
	var r reduced
	if json.Unmarshal([]byte(m[metaSpec]), &r) != nil {
		return nil
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: m[metaNamespace], Name: m[metaName], UID: types.UID(m[metaUID])},
		Spec:       corev1.PodSpec{NodeName: o.node, RestartPolicy: r.Restart, HostNetwork: r.HostNetwork},
	}
	for _, c := range r.Init {
		k := corev1.Container{Name: c.Name, Image: c.Image}
		if c.Sidecar {
			always := corev1.ContainerRestartPolicyAlways
			k.RestartPolicy = &always
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, k)
	}
	for _, c := range r.Containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image})
	}
	return pod
}

func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
