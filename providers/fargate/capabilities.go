// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// Capabilities returns the capabilities of a provider with this configuration.
func (c Config) Capabilities() capability.Declaration {
	const noField = "a task definition has no field for it"
	d := capability.Only().
		Note("several containers end together: one more, of filesImage, waits for them", capability.RunToCompletion).
		Note("one that fails lets the pod fail, whatever restartPolicy says; its own requests and limits size the task and are not kept", capability.InitContainers).
		Note("what comes next waits until it was started", capability.Sidecars).
		Note("readinessProbe every 5 s at most, with 2 s of time at least; the others by this node with ECS Exec, as seldom as the configuration says, and without a restart: the pod fails", capability.ExecProbes).
		Note("the limit of memory; CPU may be used up to the size of the task", capability.ContainerLimits).
		Note("on the disk of the task; a sizeLimit is not kept", capability.EmptyDir).
		Note("runAsNonRoot and runAsGroup with runAsUser; a command of exec is root all the same", capability.RunAsUser).
		Note("", capability.ReadOnlyRoot).
		Note("all can be dropped, and SYS_PTRACE be added", capability.Capabilities).
		Note("written once, by a container of filesImage that starts before the others", capability.ObjectVolumes).
		Note("a token is not replaced while the pod runs", capability.TokenVolumes).
		Note("file systems of EFS that the configuration allows, as nfs with their name in the VPC", capability.OtherVolumes).
		Note("file systems of EFS, by "+efsDriver+" or NFS", capability.PersistentVolume).
		Lacks("a task gets its files once, and these are to be replaced before they end", capability.CertificateFiles).
		Lacks("variables are in the definition of a task, before there are files", capability.EnvFiles).
		LacksFields(noField, capability.RunAsUser, "supplementalGroups", "supplementalGroupsPolicy").
		Accept(capability.OwnMachine()...).
		Lacks(noField, capability.NoNewPrivileges, capability.Seccomp, capability.AppArmor, capability.PostStartHooks, capability.PreStopHooks, capability.StopSignal, capability.TerminationMessages,
			capability.ContainerRestartRules, capability.PodResources, capability.SubPath, capability.FSGroup, capability.MountPropagation).
		Lacks("a task does not change while it runs", capability.EphemeralContainers, capability.InPlaceResize).
		Lacks("tasks in a VPC have its name servers, and a host name that AWS gives", capability.DNS, capability.Hostname, capability.HostAliases).
		Lacks("ECS has no attach", capability.InteractiveContainers).
		Lacks("the machine is not yours", capability.HostNetwork, capability.HostPorts, capability.HostPortMapping, capability.HostPath, capability.HostNamespaces, capability.Privileged)
	if c.InfrastructureRole != "" {
		d = d.Note("of "+ebsDriver+": one volume of EBS, which is made with the task and goes with it", capability.CSIVolumes)
	} else {
		d = d.Lacks("name infrastructureRole in the configuration: ECS makes volumes of EBS by it", capability.CSIVolumes)
	}
	if !c.reachable() {
		return d.Lacks("ECS has health checks by commands alone, and this node does not reach pods", capability.NetworkProbes)
	}
	return d.Note("by this node, which must reach the addresses of pods; one that fails ends the pod", capability.NetworkProbes)
}

// maxContainers is the maximum number of containers of a task definition. minGrace and maxGrace bound the
// seconds that a container has to stop.
const maxContainers, minGrace, maxGrace = 10, 2, 120

// filesName is the name of the container that writes the files of a pod before the other containers start.
// waiterName is the name of the container that ends the task after them.
const filesName, waiterName = "vk-files", "vk-wait"

// endsTogether reports whether a pod ends when the last of several containers ends. A task ends with its first
// essential container.
func endsTogether(spec *corev1.PodSpec) bool {
	return len(spec.Containers) > 1 && (spec.RestartPolicy == corev1.RestartPolicyNever || spec.RestartPolicy == corev1.RestartPolicyOnFailure)
}

// refuse returns an error with the path of the field if a pod uses a feature that tasks lack and that a capability declaration cannot
// express.
func refuse(pod *corev1.Pod) error {
	spec, at := &pod.Spec, field.NewPath("spec")
	most := maxContainers
	if slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return podspec.Written(&v) }) {
		most-- // one container writes the files
	}
	if endsTogether(spec) {
		most-- // one container waits for the others
	}
	if n := len(spec.InitContainers) + len(spec.Containers); n > most {
		return errdefs.InvalidInputf("%s: %d with init containers: a task has %d at most", at.Child("containers"), n, most)
	}
	if s := spec.TerminationGracePeriodSeconds; s != nil && *s > maxGrace {
		return errdefs.InvalidInputf("%s: %d: a container on Fargate has %d at most", at.Child("terminationGracePeriodSeconds"), *s, maxGrace)
	}
	return service.Containers(pod, func(c *corev1.Container, _ bool, path *field.Path) error {
		switch {
		case c.Name == filesName, c.Name == waiterName:
			return errdefs.InvalidInputf("%s: %s is that of a container which this node adds", path.Child("name"), c.Name)
		case c.ImagePullPolicy == corev1.PullNever:
			return errdefs.InvalidInputf("%s: a task has no image before it starts", path.Child("imagePullPolicy"))
		case c.ReadinessProbe != nil && c.ReadinessProbe.Exec != nil && c.ReadinessProbe.SuccessThreshold > 1:
			return errdefs.InvalidInputf("%s: a health check of ECS has no field for it", path.Child("readinessProbe", "successThreshold"))
		}
		for i, p := range c.Ports {
			if p.Protocol == corev1.ProtocolSCTP {
				return errdefs.InvalidInputf("%s: a task has TCP and UDP", path.Child("ports").Index(i).Child("protocol"))
			}
		}
		return nil
	})
}
