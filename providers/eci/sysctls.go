// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// ECI takes two sysctls as safe. A field of their own takes the other sysctls of its list, with some exceptions.
var (
	safeSysctls    = []string{"net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start"}
	unsafeSysctls  = []string{"kernel.shm*", "kernel.msg*", "kernel.sem", "fs.mqueue.*", "net.*", "vm.min_free_kbytes"}
	refusedSysctls = []string{"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies"}
)

// sysctls sets the kernel parameters of the group.
func (out *createRequest) sysctls(pod *corev1.Pod, at *field.Path) error {
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	for i, c := range pod.Spec.SecurityContext.Sysctls {
		name := dotted(c.Name)
		switch {
		case slices.Contains(safeSysctls, name):
			out.SecurityContext.Sysctl = append(out.SecurityContext.Sysctl, header{name, c.Value})
		case !slices.Contains(refusedSysctls, name) && slices.ContainsFunc(unsafeSysctls, func(pattern string) bool { return matches(pattern, name) }):
			out.HostSecurityContext.Sysctl = append(out.HostSecurityContext.Sysctl, header{name, c.Value})
		default:
			return errdefs.InvalidInputf("%s: %s: ECI takes %s, but for %s", at.Index(i), c.Name, strings.Join(unsafeSysctls, ", "), strings.Join(refusedSysctls, ", "))
		}
	}
	return nil
}

// dotted returns the name of a sysctl with dots between its parts. Kubernetes also takes slashes, and then a dot
// belongs to a part of the name.
func dotted(name string) string {
	at := strings.IndexAny(name, "./")
	if at < 0 || name[at] == '.' {
		return name
	}
	return strings.NewReplacer("/", ".", ".", "/").Replace(name)
}

func matches(pattern, name string) bool {
	before, open := strings.CutSuffix(pattern, "*")
	return name == pattern || open && strings.HasPrefix(name, before)
}
