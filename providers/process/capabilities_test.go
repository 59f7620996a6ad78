// SPDX-License-Identifier: Apache-2.0

package process

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// SELinux labels have no effect on a kernel without SELinux, so they must not be refused there, as with a
// kubelet.
func TestLabelsAreRefusedOnlyWhereTheyWouldBeKept(t *testing.T) {
	if lacks, _ := declareFeatures(surroundings{isolation: IsolationRunc}); lacks[capability.SELinux] != "" {
		t.Errorf("without SELinux, labels are refused: %s", lacks[capability.SELinux])
	}
	if lacks, _ := declareFeatures(surroundings{isolation: IsolationRunc, selinux: true}); lacks[capability.SELinux] == "" {
		t.Error("with SELinux, labels that nobody sets are not refused")
	}
}

// A host port is a port of the machine. Only a plugin of the network can map it to another port of a pod.
func TestHostPortsThatNobodyMapsAreRefused(t *testing.T) {
	const why = "the network of pods (podNetwork) has no plugin for host ports, such as portmap"
	for _, test := range []struct {
		in              surroundings
		ports, mappings string
	}{
		{surroundings{isolation: IsolationRunc}, "", "every pod is in the network of the machine, where a port has one number; podNetwork gives pods a network of their own"},
		{surroundings{isolation: IsolationRunc, network: true}, why, why},
		{surroundings{isolation: IsolationRunc, network: true, hostPorts: true}, "", ""},
	} {
		if lacks, _ := declareFeatures(test.in); lacks[capability.HostPorts] != test.ports || lacks[capability.HostPortMapping] != test.mappings {
			t.Errorf("%+v: lacks host ports %q and their mapping %q", test.in, lacks[capability.HostPorts], lacks[capability.HostPortMapping])
		}
	}
}

// A pod that wants its system calls filtered does not run unfiltered as a program of the machine, unless the
// operator allows it.
func TestSeccompIsRefusedUnlessTheOperatorIgnoresIt(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}}}
	for _, isolation := range []string{"", IsolationRunc, IsolationCrun} {
		if refused := (Config{Isolation: isolation}).Capabilities().Check(pod); refused != nil {
			t.Errorf("with a runtime, %q: got %v", isolation, refused)
		}
	}
	if refused := (Config{Isolation: IsolationNone}).Capabilities().Check(pod); len(refused) != 1 || refused[0].Path != "spec.securityContext.seccompProfile" {
		t.Errorf("without: got %v, want the field to be refused", refused)
	}
	if refused := (Config{Isolation: IsolationNone, IgnoreSeccomp: true}).Capabilities().Check(pod); refused != nil {
		t.Errorf("with ignoreSeccomp: got %v", refused)
	}
	for _, test := range []struct {
		profile *runtimeapi.SecurityProfile
		refused [2]bool // by default, and with ignoreSeccomp
	}{
		{nil, [2]bool{}},
		{&runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}, [2]bool{}},
		{&runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}, [2]bool{true, false}},
		{&runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: "/p"}, [2]bool{true, true}},
	} {
		for i, ignore := range []bool{false, true} {
			r := &Runtime{config: Config{IgnoreSeccomp: ignore}}
			if err := r.setSecurity(&shim.Spec{}, &runtimeapi.LinuxContainerSecurityContext{Seccomp: test.profile}); (err != nil) != test.refused[i] {
				t.Errorf("a container with %v, ignoreSeccomp %v: got %v", test.profile, ignore, err)
			}
		}
	}
}
