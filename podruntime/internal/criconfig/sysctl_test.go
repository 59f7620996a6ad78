// SPDX-License-Identifier: Apache-2.0

package criconfig

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestSysctlsOfOthersAreForbidden: a pod may set an allowed sysctl of its own namespaces, and no sysctl of the
// host.
func TestSysctlsOfOthersAreForbidden(t *testing.T) {
	rule := func(machineNetwork bool, unsafe ...string) Sysctls {
		s, err := NewSysctls(unsafe, machineNetwork)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	host := func(p *corev1.PodSpec) { p.HostNetwork, p.HostIPC = true, true }
	for _, test := range []struct {
		name string
		rule Sysctls
		spec func(*corev1.PodSpec)
		want string // a part of the error; "" means no error
	}{
		{"net.ipv4.tcp_syncookies", Sysctls{}, nil, ""},
		{"net/ipv4/tcp_syncookies", Sysctls{}, nil, ""},
		{"net.ipv4.tcp_syncookies", rule(true), nil, "in the network of the machine"},
		{"net/ipv4/tcp_syncookies", rule(true), nil, "in the network of the machine"},
		{"kernel.shm_rmid_forced", rule(true), nil, ""},
		{"net.core.somaxconn", Sysctls{}, nil, `forbidden sysctl: "net.core.somaxconn" not allowlisted`},
		{"net.core.somaxconn", rule(false, "net.core.somaxconn"), nil, ""},
		{"net.core.somaxconn", rule(false, "net/core/somaxconn"), nil, ""},
		{"net.core.somaxconn2", rule(false, "net.core.somaxconn"), nil, "not allowlisted"},
		{"net.core.somaxconn", rule(false, "net.core.*"), nil, ""},
		{"net.core.somaxconn", rule(true, "net.*"), nil, "in the network of the machine"},
		{"net.core.somaxconn", rule(false, "net.*"), host, "not allowed with host net enabled"},
		{"kernel.msgmax", rule(false, "kernel.msg*"), nil, ""},
		{"kernel.sem", rule(false, "kernel.msg*"), nil, "not allowlisted"},
		{"kernel.msgmax", rule(false, "kernel.msg*"), host, "not allowed with host ipc enabled"},
		{"fs.mqueue.msg_max", rule(false, "fs.mqueue.*"), host, "not allowed with host ipc enabled"},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: test.name, Value: "1"}}}}}
		if test.spec != nil {
			test.spec(&pod.Spec)
		}
		err := test.rule.Verify(pod)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s with %+v: got %v, want %q", test.name, test.rule, err, test.want)
		}
	}
}

// TestSysctlsOfTheMachineCannotBeAllowed: these sysctls have no namespace, so a pod would set them for the whole
// host.
func TestSysctlsOfTheMachineCannotBeAllowed(t *testing.T) {
	for _, pattern := range []string{"", "*", "kernel.*", "kernel.panic", "vm.swappiness", "fs.*", "network.a", "net.*.b", "net"} {
		if _, err := NewSysctls([]string{"net.core.somaxconn", pattern}, false); err == nil || !strings.Contains(err.Error(), `"`+pattern+`"`) {
			t.Errorf("%q: got %v, want an error that names it", pattern, err)
		}
	}
}
