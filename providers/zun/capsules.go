// SPDX-License-Identifier: Apache-2.0

package zun

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/sizing"
)

// template is a capsule.
type template struct {
	Kind             string      `json:"kind"`
	CapsuleVersion   string      `json:"capsuleVersion"`
	Metadata         metadata    `json:"metadata"`
	Spec             capsuleSpec `json:"spec"`
	AvailabilityZone string      `json:"availabilityZone,omitempty"`
}

type metadata struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

type capsuleSpec struct {
	RestartPolicy string   `json:"restartPolicy"`
	Containers    []member `json:"containers"`
}

// member is a container of a capsule.
type member struct {
	Image     string            `json:"image"`
	Args      []string          `json:"args,omitempty"`
	WorkDir   string            `json:"workDir,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Stdin     bool              `json:"stdin,omitempty"`
	TTY       bool              `json:"tty,omitempty"`
	Resources *resources        `json:"resources,omitempty"`
}

// resources are numbers: Zun sums them up, and fails with texts.
type resources struct {
	Requests struct {
		CPU    float64 `json:"cpu,omitempty"`
		Memory int64   `json:"memory,omitempty"`
	} `json:"requests"`
}

// capsuleRefusals are what a capsule cannot do and a container can.
func capsuleRefusals(pod *corev1.Pod) (all []refusal) {
	s, spec := &pod.Spec, field.NewPath("spec")
	all = []refusal{
		{s.RestartPolicy != corev1.RestartPolicyAlways && s.RestartPolicy != "", spec.Child("restartPolicy"), "Zun never tells that a container of a capsule has ended, so a pod that ends would run for ever: use a pod of one container"},
		{len(s.ImagePullSecrets) > 0, spec.Child("imagePullSecrets"), "a capsule has no credentials"},
	}
	for i := range s.Containers {
		c, at := &s.Containers[i], spec.Child("containers").Index(i)
		all = append(all,
			refusal{len(c.Command) > 0, at.Child("command"), "a capsule runs the entrypoint of the image: use args"},
			refusal{len(c.VolumeMounts) > 0, at.Child("volumeMounts"), "a capsule has no files"},
			refusal{c.LivenessProbe != nil || c.ReadinessProbe != nil || c.StartupProbe != nil, at.Child("livenessProbe"), "a capsule has no probes"})
	}
	return all
}

// template returns the capsule of a pod. It is the same for the same pod. Errors are of the kind invalid-input.
func (m mapping) template(in *service.Inputs) (template, error) {
	out := template{
		Kind: "capsule", CapsuleVersion: "beta", Metadata: metadata{in.Name, in.Tags}, AvailabilityZone: m.config.AvailabilityZone,
		Spec: capsuleSpec{RestartPolicy: string(corev1.RestartPolicyAlways)},
	}
	for i := range in.Pod.Spec.Containers {
		spec, at := &in.Pod.Spec.Containers[i], field.NewPath("spec", "containers").Index(i)
		c := in.Containers[spec.Name]
		cpu, memory, err := m.size(spec, at)
		if err != nil {
			return out, err
		}
		one := member{Image: c.Image, Args: c.Args, WorkDir: c.WorkingDir, Env: environment(c), Stdin: c.Stdin, TTY: c.TTY}
		if cpu > 0 || memory > 0 {
			one.Resources = &resources{}
			one.Resources.Requests.CPU, one.Resources.Requests.Memory = float64(cpu)/1000, memory/sizing.Mi
		}
		out.Spec.Containers = append(out.Spec.Containers, one)
	}
	return out, nil
}

// noSession refuses a request that capsules do not have.
func (i instance) noSession(what string) error {
	if i.capsule {
		return errdefs.InvalidInputf("a capsule of Zun has no %s: use a pod of one container", what)
	}
	return nil
}
