// SPDX-License-Identifier: Apache-2.0

package criconfig

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// errUserNamespace refuses a pod with its own user namespace.
var errUserNamespace = errors.New("the runtime does not support user namespaces (spec.hostUsers: false)")

// Network is the network configuration of a pod before it has an address.
type Network struct {
	Hostname string
	DNS      *runtimeapi.DNSConfig
}

// Sandbox returns the configuration of the sandbox of a pod.
func (s Settings) Sandbox(pod *corev1.Pod, attempt uint32, network Network) (*runtimeapi.PodSandboxConfig, error) {
	security, err := sandboxSecurity(pod)
	if err != nil {
		return nil, err
	}
	config := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: pod.Name, Namespace: pod.Namespace, Uid: string(pod.UID), Attempt: attempt},
		Labels:       s.podLabels(pod),
		Annotations:  podAnnotations(pod),
		LogDirectory: s.LogDirectory(pod),
		DnsConfig:    network.DNS,
		PortMappings: portMappings(pod),
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent:    s.podCgroup(pod),
			SecurityContext: security,
			Sysctls:         podSysctls(pod),
			Resources:       s.podResources(pod),
			Overhead:        s.podOverhead(pod),
		},
	}
	if !pod.Spec.HostNetwork {
		config.Hostname = network.Hostname
	}
	return config, nil
}

func (s Settings) podCgroup(pod *corev1.Pod) string {
	if s.PodCgroup == nil {
		return ""
	}
	return s.PodCgroup(pod)
}

func podSysctls(pod *corev1.Pod) map[string]string {
	all := map[string]string{}
	if sc := pod.Spec.SecurityContext; sc != nil {
		for _, s := range sc.Sysctls {
			all[dottedName(s.Name)] = s.Value
		}
	}
	return all
}

// portMappings returns all ports: the runtime ignores ports without a host port.
func portMappings(pod *corev1.Pod) []*runtimeapi.PortMapping {
	var all []*runtimeapi.PortMapping
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			all = append(all, &runtimeapi.PortMapping{
				Protocol: portProtocol(p.Protocol), ContainerPort: p.ContainerPort, HostPort: p.HostPort, HostIp: p.HostIP,
			})
		}
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; isSidecar(c) {
			add(c)
		}
	}
	return all
}

func portProtocol(p corev1.Protocol) runtimeapi.Protocol {
	switch p {
	case corev1.ProtocolUDP:
		return runtimeapi.Protocol_UDP
	case corev1.ProtocolSCTP:
		return runtimeapi.Protocol_SCTP
	}
	return runtimeapi.Protocol_TCP
}

// sandboxSecurity returns the security context of the sandbox, which has the pod's namespaces.
func sandboxSecurity(pod *corev1.Pod) (*runtimeapi.LinuxSandboxSecurityContext, error) {
	namespaces, err := sharedNamespaces(pod)
	if err != nil {
		return nil, err
	}
	out := &runtimeapi.LinuxSandboxSecurityContext{
		NamespaceOptions: namespaces,
		Privileged:       anyPrivileged(pod),
		Seccomp:          &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
	}
	sc := pod.Spec.SecurityContext
	if sc == nil {
		return out, nil
	}
	out.RunAsUser, out.RunAsGroup = int64Value(sc.RunAsUser), int64Value(sc.RunAsGroup)
	out.SelinuxOptions = seLinuxOption(sc.SELinuxOptions)
	out.SupplementalGroups, out.SupplementalGroupsPolicy, err = podGroups(pod)
	return out, err
}

// sharedNamespaces returns the namespaces shared by containers with their pod or with the machine.
func sharedNamespaces(pod *corev1.Pod) (*runtimeapi.NamespaceOption, error) {
	if pod.Spec.HostUsers != nil && !*pod.Spec.HostUsers {
		return nil, errUserNamespace
	}
	out := &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER}
	if pod.Spec.HostNetwork {
		out.Network = runtimeapi.NamespaceMode_NODE
	}
	if pod.Spec.HostIPC {
		out.Ipc = runtimeapi.NamespaceMode_NODE
	}
	switch {
	case pod.Spec.HostPID:
		out.Pid = runtimeapi.NamespaceMode_NODE
	case pod.Spec.ShareProcessNamespace != nil && *pod.Spec.ShareProcessNamespace:
		out.Pid = runtimeapi.NamespaceMode_POD
	}
	return out, nil
}

func anyPrivileged(pod *corev1.Pod) bool {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if sc := list[i].SecurityContext; sc != nil && sc.Privileged != nil && *sc.Privileged {
				return true
			}
		}
	}
	return false
}
