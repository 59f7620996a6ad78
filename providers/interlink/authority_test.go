// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// TestNodeDoubtsThatManyPodsHaveGone checks that the provider does not implement node.PodAuthority: a server or
// a plugin that has lost its memory answers with an empty list.
func TestNodeDoubtsThatManyPodsHaveGone(t *testing.T) {
	t.Setenv("VKUBELET_INTERLINK_URL", "http://127.0.0.1:1")
	p, err := Provider().New(t.Context(), cli.ProviderInput{NodeName: "node"})
	if err != nil {
		t.Fatal(err)
	}
	if _, is := p.(node.PodAuthority); is {
		t.Error("it answers for all pods")
	}
}
