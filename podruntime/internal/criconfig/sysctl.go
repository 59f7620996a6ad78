// SPDX-License-Identifier: Apache-2.0

package criconfig

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// safeSysctls are always allowed, because they belong to the pod's namespaces and do not affect other pods.
var safeSysctls = map[string]bool{
	"kernel.shm_rmid_forced":              true,
	"net.ipv4.ip_local_port_range":        true,
	"net.ipv4.tcp_syncookies":             true,
	"net.ipv4.ping_group_range":           true,
	"net.ipv4.ip_unprivileged_port_start": true,
	"net.ipv4.ip_local_reserved_ports":    true,
	"net.ipv4.tcp_keepalive_time":         true,
	"net.ipv4.tcp_fin_timeout":            true,
	"net.ipv4.tcp_keepalive_intvl":        true,
	"net.ipv4.tcp_keepalive_probes":       true,
	"net.ipv4.tcp_rmem":                   true,
	"net.ipv4.tcp_wmem":                   true,
}

// The sysctls of a pod's namespaces. Any other sysctl applies to the whole machine.
var (
	netSysctls = []string{"net."}
	ipcSysctls = []string{"kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue."}
)

// Sysctls are the allowed sysctls of pods. The zero value allows the safe sysctls.
type Sysctls struct {
	unsafe []string
	// machineNetwork means that no pod has its own network.
	machineNetwork bool
}

// NewSysctls allows more than the safe sysctls: names such as net.core.somaxconn, and prefixes such as kernel.msg*. An error names the first sysctl
// outside of the namespaces of a pod. machineNetwork means that every pod is in the network of the machine.
func NewSysctls(unsafe []string, machineNetwork bool) (Sysctls, error) {
	s := Sysctls{machineNetwork: machineNetwork}
	for _, pattern := range unsafe {
		name := dottedName(strings.TrimSuffix(pattern, "*"))
		if strings.Contains(name, "*") || !hasAnyPrefix(name, slices.Concat(netSysctls, ipcSysctls)) {
			return s, fmt.Errorf("%q: want a sysctl of the namespaces of a pod, or the beginning of one and *: one of %v and what is below", pattern,
				slices.Concat(netSysctls, ipcSysctls))
		}
		if strings.HasSuffix(pattern, "*") {
			name += "*"
		}
		s.unsafe = append(s.unsafe, name)
	}
	return s, nil
}

// hasAnyPrefix reports whether a name has one of several prefixes.
func hasAnyPrefix(name string, with []string) bool {
	return slices.ContainsFunc(with, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

func (s Sysctls) isAllowed(name string) bool {
	return safeSysctls[name] || slices.ContainsFunc(s.unsafe, func(pattern string) bool {
		prefix, is := strings.CutSuffix(pattern, "*")
		return name == pattern || is && strings.HasPrefix(name, prefix)
	})
}

// Verify returns an error with a kubelet's message if a pod sets a forbidden sysctl.
func (s Sysctls) Verify(pod *corev1.Pod) error {
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	for _, asked := range pod.Spec.SecurityContext.Sysctls {
		name := dottedName(asked.Name)
		switch {
		case !s.isAllowed(name):
			return fmt.Errorf("forbidden sysctl: %q not allowlisted", name)
		case hasAnyPrefix(name, netSysctls) && pod.Spec.HostNetwork:
			return fmt.Errorf("forbidden sysctl: %q not allowed with host net enabled", name)
		case hasAnyPrefix(name, netSysctls) && s.machineNetwork:
			return fmt.Errorf("forbidden sysctl: %q not allowed on this node, where every pod is in the network of the machine", name)
		case hasAnyPrefix(name, ipcSysctls) && pod.Spec.HostIPC:
			return fmt.Errorf("forbidden sysctl: %q not allowed with host ipc enabled", name)
		}
	}
	return nil
}

// dottedName returns the name of a sysctl with dots between its parts, even if it was written as a path, where dots are part of names.
func dottedName(name string) string {
	if first := strings.IndexAny(name, "./"); first < 0 || name[first] == '.' {
		return name
	}
	return strings.Map(func(r rune) rune {
		switch r {
		case '/':
			return '.'
		case '.':
			return '/'
		}
		return r
	}, name)
}
