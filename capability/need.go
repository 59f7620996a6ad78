// SPDX-License-Identifier: Apache-2.0

package capability

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Need is a field of a pod for a feature.
type Need struct {
	Feature Feature
	// Path is the path of the field, such as spec.volumes[0].hostPath.
	Path string
}

// Needs returns the needs of a pod, in the order of its fields; a field for two features appears twice. It
// leaves out the fields of every backend, and the fields handled by the node itself.
func Needs(pod *corev1.Pod) []Need {
	n := &needs{hostNetwork: pod.Spec.HostNetwork}
	spec := field.NewPath("spec")
	for i := range pod.Spec.Volumes {
		n.volume(&pod.Spec.Volumes[i], spec.Child("volumes").Index(i))
	}
	for i := range pod.Spec.InitContainers {
		c, path := &pod.Spec.InitContainers[i], spec.Child("initContainers").Index(i)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			n.add(Sidecars, path.Child("restartPolicy"))
		} else {
			n.add(InitContainers, path)
			n.when(c.RestartPolicy != nil, ContainerRestartRules, path.Child("restartPolicy"))
		}
		n.container(c, path)
	}
	for i := range pod.Spec.Containers {
		c, path := &pod.Spec.Containers[i], spec.Child("containers").Index(i)
		n.when(c.RestartPolicy != nil, ContainerRestartRules, path.Child("restartPolicy"))
		n.container(c, path)
	}
	for i := range pod.Spec.EphemeralContainers {
		path := spec.Child("ephemeralContainers").Index(i)
		n.add(EphemeralContainers, path)
		n.container((*corev1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon), path)
	}
	n.pod(&pod.Spec, spec)
	return n.list
}

// needs collects the needs of a pod.
type needs struct {
	list        []Need
	hostNetwork bool // of the pod
}

func (n *needs) add(f Feature, path *field.Path) {
	n.list = append(n.list, Need{f, path.String()})
}

func (n *needs) when(asks bool, f Feature, path *field.Path) {
	if asks {
		n.add(f, path)
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

func (n *needs) pod(s *corev1.PodSpec, spec *field.Path) {
	n.when(s.RestartPolicy == corev1.RestartPolicyNever || s.RestartPolicy == corev1.RestartPolicyOnFailure, RunToCompletion, spec.Child("restartPolicy"))
	n.when(s.HostNetwork, HostNetwork, spec.Child("hostNetwork"))
	n.when(s.HostPID, HostNamespaces, spec.Child("hostPID"))
	n.when(s.HostIPC, HostNamespaces, spec.Child("hostIPC"))
	n.when(isTrue(s.ShareProcessNamespace), SharedProcesses, spec.Child("shareProcessNamespace"))
	n.when(s.HostUsers != nil && !*s.HostUsers, UserNamespaces, spec.Child("hostUsers"))
	n.when(s.DNSPolicy == corev1.DNSNone, DNS, spec.Child("dnsPolicy"))
	n.when(s.DNSConfig != nil, DNS, spec.Child("dnsConfig"))
	n.when(s.Hostname != "", Hostname, spec.Child("hostname"))
	n.when(s.HostnameOverride != nil, Hostname, spec.Child("hostnameOverride"))
	n.when(s.Subdomain != "", Hostname, spec.Child("subdomain"))
	n.when(isTrue(s.SetHostnameAsFQDN), Hostname, spec.Child("setHostnameAsFQDN"))
	n.when(len(s.HostAliases) > 0, HostAliases, spec.Child("hostAliases"))
	n.when(s.RuntimeClassName != nil && *s.RuntimeClassName != "", RuntimeClass, spec.Child("runtimeClassName"))
	n.when(len(s.ResourceClaims) > 0, ResourceClaims, spec.Child("resourceClaims"))
	n.when(s.Resources != nil, PodResources, spec.Child("resources"))
	if c := s.SecurityContext; c != nil {
		n.podSecurity(c, spec.Child("securityContext"))
	}
}

func (n *needs) podSecurity(c *corev1.PodSecurityContext, path *field.Path) {
	n.when(c.RunAsUser != nil, RunAsUser, path.Child("runAsUser"))
	n.when(c.RunAsGroup != nil, RunAsUser, path.Child("runAsGroup"))
	n.when(isTrue(c.RunAsNonRoot), RunAsUser, path.Child("runAsNonRoot"))
	n.when(len(c.SupplementalGroups) > 0, RunAsUser, path.Child("supplementalGroups"))
	n.when(c.SupplementalGroupsPolicy != nil && *c.SupplementalGroupsPolicy != corev1.SupplementalGroupsPolicyMerge,
		RunAsUser, path.Child("supplementalGroupsPolicy"))
	n.when(c.FSGroup != nil, FSGroup, path.Child("fsGroup"))
	n.when(len(c.Sysctls) > 0, Sysctls, path.Child("sysctls"))
	n.security(securityFields{c.SELinuxOptions, c.WindowsOptions, c.SeccompProfile, c.AppArmorProfile}, path)
}

// securityFields are in the security contexts of pods and of containers.
type securityFields struct {
	seLinux  *corev1.SELinuxOptions
	windows  *corev1.WindowsSecurityContextOptions
	seccomp  *corev1.SeccompProfile
	appArmor *corev1.AppArmorProfile
}

func (n *needs) security(f securityFields, path *field.Path) {
	n.when(f.seLinux != nil, SELinux, path.Child("seLinuxOptions"))
	n.when(f.windows != nil, WindowsOptions, path.Child("windowsOptions"))
	n.when(f.seccomp != nil && f.seccomp.Type != corev1.SeccompProfileTypeUnconfined, Seccomp, path.Child("seccompProfile"))
	n.when(f.appArmor != nil && f.appArmor.Type != corev1.AppArmorProfileTypeUnconfined, AppArmor, path.Child("appArmorProfile"))
}
