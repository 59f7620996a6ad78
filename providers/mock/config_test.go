// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
)

func load(t *testing.T, text, node string) (Config, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("mock.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return LoadConfig("mock.yaml", node)
}

func TestLoadConfig(t *testing.T) {
	c, err := load(t, `
apiVersion: mock.virtual-kubelet.io/v1alpha1
kind: MockProviderConfiguration
capacity: {cpu: 4, example.com/gpu: 2}
podCIDR: 10.1.0.0/16
defaults: {runFor: 90s, exitCode: 1}
`, "n1")
	if err != nil {
		t.Fatal(err)
	}
	n := &corev1.Node{}
	newProvider(t, c).ConfigureNode(t.Context(), n)
	for name, want := range map[corev1.ResourceName]string{"cpu": "4", "memory": "4Ti", "pods": "5k", "example.com/gpu": "2"} {
		if got := n.Status.Allocatable[name]; got.String() != want {
			t.Errorf("%s: got %s, want %s", name, got.String(), want)
		}
	}
	if c.Defaults.RunFor.Duration != 90*time.Second || c.Defaults.ExitCode != 1 {
		t.Errorf("defaults: got %+v", c.Defaults)
	}
}

func TestLoadNodeFile(t *testing.T) {
	c, err := load(t, `{"n1": {"cpu": "2", "pods": "128", "others": {"example.com/gpu": "1"}, "providerID": "mock:///n1"}, "n2": {}}`, "n1")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[corev1.ResourceName]string{"cpu": "2", "memory": "100Gi", "pods": "128", "ephemeral-storage": "1Ti", "example.com/gpu": "1"} {
		if got := c.Capacity[name]; got.String() != want {
			t.Errorf("%s: got %s, want %s", name, got.String(), want)
		}
	}
	if c.ProviderID != "mock:///n1" {
		t.Errorf("provider ID: got %q", c.ProviderID)
	}
}

func TestLoadConfigErrors(t *testing.T) {
	const head = "apiVersion: mock.virtual-kubelet.io/v1alpha1\nkind: MockProviderConfiguration\n"
	for _, tc := range []struct{ name, text, want string }{
		{"field", head + "defaults:\n  runfor: 1s", `unknown field "defaults.runfor" at mock.yaml:4; did you mean runFor?`},
		{"kind", "apiVersion: v1\nkind: Pod", `field "apiVersion" at mock.yaml:1: unknown apiVersion "v1"; known is: mock.virtual-kubelet.io/v1alpha1` + "\n" +
			`field "kind" at mock.yaml:2: unknown kind "Pod"; known is: MockProviderConfiguration`},
		{"node", `{"a": {}, "b": {}}`, `mock.yaml: no entry for node "n1", only for: a, b`},
		{"node field", "{\"n1\": {\n\"cpus\": \"1\"}}", `unknown field "n1.cpus" at mock.yaml:2; did you mean cpu?`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := load(t, tc.text, "n1"); err == nil || err.Error() != tc.want {
				t.Errorf("got %v\nwant %s", err, tc.want)
			}
		})
	}
	if _, err := LoadConfig(filepath.Join(t.TempDir(), "none"), "n1"); err == nil {
		t.Error("a file that is not there is no error")
	}
	for _, c := range []Config{
		{PodCIDR: "10.0.0.0"},
		{Defaults: Behavior{ExitCode: 300}},
		{Defaults: Behavior{RunFor: seconds(-1)}},
	} {
		if _, err := New(t.Context(), cli.ProviderInput{}, c); err == nil {
			t.Errorf("configuration %+v is no error", c)
		}
	}
}
