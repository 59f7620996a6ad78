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
