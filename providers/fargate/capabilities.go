// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// Capabilities returns what pods get from a provider with this configuration.
func (c Config) Capabilities() capability.Declaration {
	return capability.Only().
		Note("one that fails lets the pod fail, whatever restartPolicy says; its own requests and limits size the task and are not kept", capability.InitContainers).
		Note("what comes next waits until it was started", capability.Sidecars).
		Note("readinessProbe alone, every 5 s at most, with 2 s of time at least", capability.ExecProbes).
		Note("the limit of memory; CPU may be used up to the size of the task", capability.ContainerLimits).
		Note("on the disk of the task; a sizeLimit is not kept", capability.EmptyDir).
		Note("runAsNonRoot and runAsGroup with runAsUser", capability.RunAsUser).
		Note("", capability.ReadOnlyRoot).
		Note("all can be dropped, and SYS_PTRACE be added", capability.Capabilities).
		Lacks("a task has no files from outside of it", capability.ObjectVolumes, capability.TokenVolumes, capability.CertificateFiles, capability.EnvFiles).
		Lacks("ECS has health checks by commands alone", capability.NetworkProbes).
		Lacks("a task definition has no field for it", capability.PostStartHooks, capability.PreStopHooks, capability.StopSignal, capability.TerminationMessages,
			capability.ContainerRestartRules, capability.PodResources, capability.SubPath, capability.FSGroup, capability.MountPropagation).
		Lacks("a task does not change while it runs", capability.EphemeralContainers, capability.InPlaceResize).
		Lacks("tasks in a VPC have its name servers, and a host name that AWS gives", capability.DNS, capability.Hostname, capability.HostAliases).
		Lacks("ECS has no attach", capability.InteractiveContainers).
		Lacks("the machine is not yours", capability.HostNetwork, capability.HostPorts, capability.HostPortMapping, capability.HostPath, capability.HostNamespaces, capability.Privileged)
}

// refuse refuses what Fargate cannot do, with the path of the field.
func (m mapping) refuse(pod *corev1.Pod) error {
	if lacks := m.config.Capabilities().Check(pod); len(lacks) > 0 {
		return errdefs.InvalidInput(capability.Message(lacks))
	}
	spec, at := &pod.Spec, field.NewPath("spec")
	if n := len(spec.InitContainers) + len(spec.Containers); n > maxContainers {
		return errdefs.InvalidInputf("%s: %d with init containers: a task definition has %d at most", at.Child("containers"), n, maxContainers)
	}
	if len(spec.Containers) > 1 && spec.RestartPolicy != corev1.RestartPolicyAlways && spec.RestartPolicy != "" {
		return errdefs.InvalidInputf("%s: with restartPolicy %s a pod has one container on Fargate: a task stops when the first one has ended", at.Child("containers").Index(1), spec.RestartPolicy)
	}
	if s := spec.TerminationGracePeriodSeconds; s != nil && *s > maxGrace {
		return errdefs.InvalidInputf("%s: %d: a container on Fargate has %d at most", at.Child("terminationGracePeriodSeconds"), *s, maxGrace)
	}
	if s := spec.SecurityContext; s != nil && (len(s.SupplementalGroups) > 0 || s.SupplementalGroupsPolicy != nil) {
		name := "supplementalGroups"
		if s.SupplementalGroupsPolicy != nil {
			name = "supplementalGroupsPolicy"
		}
		return errdefs.InvalidInputf("%s: a task definition has no field for it", at.Child("securityContext", name))
	}
	for c, path := range containersOf(spec) {
		if err := m.image(spec, c, path); err != nil {
			return err
		}
		for i, p := range c.Ports {
			if p.Protocol == corev1.ProtocolSCTP {
				return errdefs.InvalidInputf("%s: a task has TCP and UDP", path.Child("ports").Index(i).Child("protocol"))
			}
		}
	}
	return nil
}

// image refuses an image whose pull secrets would be left out.
func (m mapping) image(spec *corev1.PodSpec, c *corev1.Container, at *field.Path) error {
	host := registry(c.Image)
	if len(spec.ImagePullSecrets) == 0 || m.config.RegistryCredentials[host] != "" || strings.Contains(host, ".dkr.ecr.") {
		return nil
	}
	return errdefs.InvalidInput(fmt.Sprintf("%s: Fargate pulls with credentials in Secrets Manager: name those of %s in registryCredentials, or leave spec.imagePullSecrets out", at.Child("image"), host))
}
