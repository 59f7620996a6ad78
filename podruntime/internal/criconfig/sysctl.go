// SPDX-License-Identifier: Apache-2.0

package criconfig

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// safeSysctls are those that a pod may set, because they are its own and do no harm to others.
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

// VerifySysctls returns an error, with the text of a kubelet, if a pod wants to set what it must not.
func VerifySysctls(pod *corev1.Pod) error {
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	for _, s := range pod.Spec.SecurityContext.Sysctls {
		name := dotted(s.Name)
		switch {
		case !safeSysctls[name]:
			return fmt.Errorf("forbidden sysctl: %q not allowlisted", name)
		case strings.HasPrefix(name, "net.") && pod.Spec.HostNetwork:
			return fmt.Errorf("forbidden sysctl: %q not allowed with host net enabled", name)
		case strings.HasPrefix(name, "kernel.") && pod.Spec.HostIPC:
			return fmt.Errorf("forbidden sysctl: %q not allowed with host ipc enabled", name)
		}
	}
	return nil
}

// dotted writes the name of a sysctl with dots between its parts, also one that was written as a path: there
// dots are part of names.
func dotted(name string) string {
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
