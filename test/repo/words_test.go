// SPDX-License-Identifier: Apache-2.0

package repo_test

import (
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/repocheck"
)

// saidAllTheSame are the old words that must stay, with their places.
var saidAllTheSame = []repocheck.Said{
	{File: "providers/process/internal/shim/spec.go", Word: "keeper",
		Why: "states of running containers on disk have the field by this name"},
	{File: "test/repo/words_test.go", Word: "keeper", Why: "the line above"},
}

// TestTheFieldsWords reads the old words from the glossary: it is the one place that has them.
func TestTheFieldsWords(t *testing.T) {
	breaches, err := load(t).Words(t.Context(), "docs/glossary.md", saidAllTheSame)
	if err != nil {
		t.Fatal(err)
	}
	report(t, "who knows Kubernetes knows its words, and ours cost everybody a look-up", breaches)
}
