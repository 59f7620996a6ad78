// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
)

const pagesDir = "../../docs/reports/providers"

// pageMark begins every generated page.
const pageMark = "<!-- Made by `make generate` from "

// TestProviderPages compares docs/reports/providers with the declarations and results of the providers; with -update it writes them. A page without a
// provider is an error, and -update removes it.
func TestProviderPages(t *testing.T) {
	made := map[string]bool{}
	for _, p := range read(t) {
		file := filepath.Join(pagesDir, p.name+".md")
		made[file] = true
		compare(t, file, p.page())
	}
	files, err := filepath.Glob(pagesDir + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case made[file] || !strings.HasPrefix(string(text), pageMark):
		case *update:
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s is of a provider that the program does not have; run make generate", file)
		}
	}
}

// page returns the page of a provider: its features, and the contract checks that prove them.
func (k known) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%sthe declaration of provider %s and docs/reports/contract. -->\n\n", pageMark, k.name)
	fmt.Fprintf(&b, "# What pods get on %s\n\n[Its README](../../../providers/%s/README.md) says how to use the provider. [What pods get](../support.md) compares all providers.\n\n", k.name, k.name)
	b.WriteString("## Features\n\n")
	if k.declared == nil {
		b.WriteString("The provider declares nothing before it runs.\n")
	} else {
		b.WriteString("With the default configuration:\n\n")
		b.WriteString(capability.Table(capability.Named{Name: k.name, Declaration: *k.declared, Proven: k.proven()}))
	}
	b.WriteString("\n## Proven on what, when\n\n")
	if len(k.results) == 0 {
		b.WriteString("Nothing yet: no results of the contract were kept. `virtual-kubelet contract --provider " + k.name + " --result FILE` makes them.\n")
	}
	for _, f := range k.results {
		fmt.Fprintf(&b, "On %s, %s, with the contract at version %s:\n\n", f.Backend, f.Date.Format(time.DateOnly), f.Version)
		b.WriteString(checks(f))
	}
	return b.String()
}

// checks summarizes the checks of a run. It lists failed and skipped checks, and declared features without a proof.
func checks(f providertest.ResultFile) string {
	n := map[providertest.Outcome]int{}
	why := map[providertest.Outcome]*strings.Builder{providertest.Failed: {}, providertest.Skipped: {}}
	for _, k := range f.Checks {
		n[k.Outcome]++
		if text := why[k.Outcome]; text != nil {
			detail, _, _ := strings.Cut(k.Detail, "\n")
			fmt.Fprintf(text, "| `%s` | %s | %s |\n", k.Name, k.Outcome, strings.ReplaceAll(detail, "|", "\\|"))
		}
	}
	for _, feature := range f.Features {
		if text := why[feature.Outcome]; text != nil {
			fmt.Fprintf(text, "| feature %s | not proven | %s |\n", feature.Feature, strings.ReplaceAll(feature.Detail, "|", "\\|"))
		}
	}
	text := fmt.Sprintf("%d checks passed, %d failed, %d were skipped.\n", n[providertest.Passed], n[providertest.Failed], n[providertest.Skipped])
	if rows := why[providertest.Failed].String() + why[providertest.Skipped].String(); rows != "" {
		text += "\n| Check | Outcome | Why |\n|---|---|---|\n" + rows
	}
	return text
}

// TestPage: a page lists every check that did not pass.
func TestPage(t *testing.T) {
	declared := capability.Only(capability.DNS)
	k := known{name: "cloud", declared: &declared, results: []providertest.ResultFile{{
		Subject: providertest.Subject{Provider: "cloud", Version: "v1", Backend: "an account in the north"},
		Date:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Checks: []providertest.CheckOutcome{
			{Name: "a/one", Outcome: providertest.Passed}, {Name: "a/two", Outcome: providertest.Skipped, Detail: "no shell"},
			{Name: "a/three", Outcome: providertest.Failed, Detail: "got 1|2\nand more"},
		},
		Features: []providertest.FeatureResult{
			{Feature: capability.DNS, Outcome: providertest.Passed}, {Feature: capability.Sysctls, Outcome: providertest.Skipped, Detail: "no kernel"},
		},
	}}}
	page := k.page()
	for _, want := range []string{
		pageMark + "the declaration of provider cloud", "\n# What pods get on cloud\n", "](../../../providers/cloud/README.md)",
		"On an account in the north, 2026-01-02, with the contract at version v1:\n\n1 checks passed, 1 failed, 1 were skipped.\n",
		"| `a/three` | failed | got 1\\|2 |\n| `a/two` | skipped | no shell |\n| feature Sysctls | not proven | no kernel |\n", "| proven |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if page := (known{name: "new"}).page(); !strings.Contains(page, "Nothing yet") || !strings.Contains(page, "declares nothing before it runs") {
		t.Errorf("the page of a provider without results and declaration: %s", page)
	}
}
