// SPDX-License-Identifier: Apache-2.0

package repo_test

import (
	"os"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/repocheck"
)

// inOrder are the packages whose files have an order: the core and the packages above it that run pods.
var inOrder = []string{
	"node", "node/api", "node/nodeutil", "internal/admission", "internal/lease", "internal/lifecycle", "internal/replicas",
	"podruntime/...", "providerkit/...", "providers/...", "providertest/...",
}

func TestFilesOfPackagesHaveAnOrder(t *testing.T) {
	tree := load(t)
	text, err := os.ReadFile("test/repo/order.txt")
	if err != nil {
		t.Fatal(err)
	}
	ceilings, err := repocheck.ParseCeilings(string(text))
	if err != nil {
		t.Fatalf("order.txt: %v", err)
	}
	report(t, "a reader of a large package must be able to begin at its ground, and a part that stands on another one must not be known there",
		tree.FileOrders(ceilings, inOrder...))
}
