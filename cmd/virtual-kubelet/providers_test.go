// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
)

func TestMockProviderReadsItsFile(t *testing.T) {
	all := providers()
	i := slices.IndexFunc(all, func(p cli.Provider) bool { return p.Name == "mock" })
	if i < 0 {
		t.Fatal("the program has no provider mock")
	}
	p := all[i]
	path := filepath.Join(t.TempDir(), "mock.json")
	if err := os.WriteFile(path, []byte(`{"n1": {"cpu": "3"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := p.New(t.Context(), cli.ProviderInput{NodeName: "n1", InternalIP: "192.0.2.1", DaemonPort: 10250, ConfigPath: path})
	if err != nil {
		t.Fatal(err)
	}
	n := &corev1.Node{}
	made.(cli.NodeConfigurer).ConfigureNode(t.Context(), n)
	if n.Status.Capacity.Cpu().String() != "3" || n.Status.Addresses[0].Address != "192.0.2.1" || n.Status.DaemonEndpoints.KubeletEndpoint.Port != 10250 {
		t.Errorf("node: got %+v", n.Status)
	}

	_, err = p.New(t.Context(), cli.ProviderInput{NodeName: "n2", ConfigPath: path})
	if err == nil || !strings.Contains(err.Error(), `no entry for node "n2"`) {
		t.Errorf("another node: got %v", err)
	}
}

// TestProvidersRefuseFilesOfOthers: the error of every provider has the position and the expected apiVersion.
func TestProvidersRefuseFilesOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.yaml")
	if err := os.WriteFile(path, []byte("apiVersion: other.example/v1\nkind: OtherConfiguration\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{path + ":1", path + ":2", `"other.example/v1"`, `"OtherConfiguration"`, "known is: "}
	for _, p := range providers() {
		want := append(slices.Clone(want), p.Name+".virtual-kubelet.io/v1alpha1")
		_, err := p.New(t.Context(), cli.ProviderInput{NodeName: "n1", ConfigPath: path})
		errs := []error{err}
		if p.Capabilities != nil {
			_, err := p.Capabilities(path)
			errs = append(errs, err)
		}
		for _, err := range errs {
			for _, part := range want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("provider %s: got %v, want %s in it", p.Name, err, part)
				}
			}
		}
	}
}
