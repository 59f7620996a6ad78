// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os/exec"
	"strings"
	"testing"
)

// A setting that denies pods something is refused if it would have no effect.
func TestSecurityK6DenialsWithoutEffectAreRefused(t *testing.T) {
	denied := []string{"0.0.0.0/0"}
	for _, c := range []Config{
		{PodNetworkDenied: denied, PodNetwork: PodNetworkHost}, {PodNetworkDenied: denied, PodNetwork: "/etc/cni/net.d/10-pods.conflist"},
		{PodNetworkDenied: denied, Isolation: IsolationNone}, {PodNetworkDenied: []string{"10.0.0.0"}}, {PodNetworkDenied: []string{"internet"}},
	} {
		if _, err := c.completeConfig("n1"); err == nil || !strings.Contains(err.Error(), "podNetworkDenied") {
			t.Errorf("%+v: got %v", c, err)
		}
	}
	if _, err := (Config{PodNetworkDenied: denied, PodCIDR: "10.200.0.0/24"}).completeConfig("n1"); err != nil {
		t.Error(err)
	}
}

// Pods with denied destinations do not run on a node that cannot enforce the denial.
func TestSecurityK6DeniedPodsNeedTheNetworkProcess(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := exec.LookPath(runsc); err == nil || besideThis(runsc) != "" {
		t.Skip("there is a runsc")
	}
	r := &Runtime{config: Config{Isolation: IsolationRunc}, oci: &ociRuntime{name: IsolationRunc}}
	if program, err := r.networkProgram(t.Context()); err != nil || program != "" {
		t.Errorf("without denials: got %q, %v", program, err)
	}
	r.config.PodNetworkDenied = []string{"0.0.0.0/0"}
	if _, err := r.networkProgram(t.Context()); err == nil || !strings.Contains(err.Error(), "podNetworkDenied") {
		t.Errorf("with denials: got %v", err)
	}
}
