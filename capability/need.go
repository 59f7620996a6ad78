// SPDX-License-Identifier: Apache-2.0

package capability

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Need is a field of a pod that needs a feature.
type Need struct {
	Feature Feature
	// Path is the path of the field, such as spec.volumes[0].hostPath.
	Path string
}

// Needs returns the needs of a pod, in the order of its fields; a field for two features appears twice. It omits fields that every backend supports,
// and fields that the node itself handles.
func Needs(pod *corev1.Pod) []Need {
	n := &needs{hostNetwork: pod.Spec.HostNetwork}
	spec := field.NewPath("spec")
	for i := range pod.Spec.Volumes {
		n.addVolume(&pod.Spec.Volumes[i], spec.Child("volumes").Index(i))
	}
	for i := range pod.Spec.InitContainers {
		c, path := &pod.Spec.InitContainers[i], spec.Child("initContainers").Index(i)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			n.add(Sidecars, path.Child("restartPolicy"))
		} else {
			n.add(InitContainers, path)
			n.addIf(c.RestartPolicy != nil, ContainerRestartRules, path.Child("restartPolicy"))
		}
		n.addContainer(c, path)
	}
	for i := range pod.Spec.Containers {
		c, path := &pod.Spec.Containers[i], spec.Child("containers").Index(i)
		n.addIf(c.RestartPolicy != nil, ContainerRestartRules, path.Child("restartPolicy"))
		n.addContainer(c, path)
	}
	for i := range pod.Spec.EphemeralContainers {
		path := spec.Child("ephemeralContainers").Index(i)
		n.add(EphemeralContainers, path)
		n.addContainer((*corev1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon), path)
	}
	n.addPod(&pod.Spec, spec)
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

func (n *needs) addIf(asks bool, f Feature, path *field.Path) {
	if asks {
		n.add(f, path)
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

func (n *needs) addPod(s *corev1.PodSpec, spec *field.Path) {
	n.addIf(s.RestartPolicy == corev1.RestartPolicyNever || s.RestartPolicy == corev1.RestartPolicyOnFailure, RunToCompletion, spec.Child("restartPolicy"))
	n.addIf(s.HostNetwork, HostNetwork, spec.Child("hostNetwork"))
	n.addIf(s.HostPID, HostNamespaces, spec.Child("hostPID"))
	n.addIf(s.HostIPC, HostNamespaces, spec.Child("hostIPC"))
	n.addIf(isTrue(s.ShareProcessNamespace), SharedProcesses, spec.Child("shareProcessNamespace"))
	n.addIf(s.HostUsers != nil && !*s.HostUsers, UserNamespaces, spec.Child("hostUsers"))
	n.addIf(s.DNSPolicy == corev1.DNSNone, DNS, spec.Child("dnsPolicy"))
	n.addIf(s.DNSConfig != nil, DNS, spec.Child("dnsConfig"))
	n.addIf(s.Hostname != "", Hostname, spec.Child("hostname"))
	n.addIf(s.HostnameOverride != nil, Hostname, spec.Child("hostnameOverride"))
	n.addIf(s.Subdomain != "", Hostname, spec.Child("subdomain"))
	n.addIf(isTrue(s.SetHostnameAsFQDN), Hostname, spec.Child("setHostnameAsFQDN"))
	n.addIf(len(s.HostAliases) > 0, HostAliases, spec.Child("hostAliases"))
	n.addIf(s.RuntimeClassName != nil && *s.RuntimeClassName != "", RuntimeClass, spec.Child("runtimeClassName"))
	n.addIf(len(s.ResourceClaims) > 0, ResourceClaims, spec.Child("resourceClaims"))
	n.addIf(s.Resources != nil, PodResources, spec.Child("resources"))
	if c := s.SecurityContext; c != nil {
		n.podSecurity(c, spec.Child("securityContext"))
	}
}

func (n *needs) podSecurity(c *corev1.PodSecurityContext, path *field.Path) {
	n.addIf(c.RunAsUser != nil, RunAsUser, path.Child("runAsUser"))
	n.addIf(c.RunAsGroup != nil, RunAsUser, path.Child("runAsGroup"))
	n.addIf(isTrue(c.RunAsNonRoot), RunAsUser, path.Child("runAsNonRoot"))
	n.addIf(len(c.SupplementalGroups) > 0, RunAsUser, path.Child("supplementalGroups"))
	n.addIf(c.SupplementalGroupsPolicy != nil && *c.SupplementalGroupsPolicy != corev1.SupplementalGroupsPolicyMerge,
		RunAsUser, path.Child("supplementalGroupsPolicy"))
	n.addIf(c.FSGroup != nil, FSGroup, path.Child("fsGroup"))
	n.addIf(len(c.Sysctls) > 0, Sysctls, path.Child("sysctls"))
	n.addSecurity(securityFields{c.SELinuxOptions, c.WindowsOptions, c.SeccompProfile, c.AppArmorProfile}, path)
}

// securityFields are in the security contexts of pods and of containers.
type securityFields struct {
	seLinux  *corev1.SELinuxOptions
	windows  *corev1.WindowsSecurityContextOptions
	seccomp  *corev1.SeccompProfile
	appArmor *corev1.AppArmorProfile
}

func (n *needs) addSecurity(f securityFields, path *field.Path) {
	n.addIf(f.seLinux != nil, SELinux, path.Child("seLinuxOptions"))
	n.addIf(f.windows != nil, WindowsOptions, path.Child("windowsOptions"))
	n.addIf(f.seccomp != nil && f.seccomp.Type != corev1.SeccompProfileTypeUnconfined, Seccomp, path.Child("seccompProfile"))
	n.addIf(f.appArmor != nil && f.appArmor.Type != corev1.AppArmorProfileTypeUnconfined, AppArmor, path.Child("appArmorProfile"))
}
