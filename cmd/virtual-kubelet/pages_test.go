// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
)

const pagesDir = "../../docs/providers"

// pageMark begins every page that is made here.
const pageMark = "<!-- Made by `make generate` from "

// TestProviderPages compares docs/providers with the READMEs, declarations and results of the providers; with -update it writes
// them. Pages of providers that are gone fail, and are removed.
func TestProviderPages(t *testing.T) {
	made := map[string]bool{}
	for _, p := range read(t) {
		readme, err := os.ReadFile(filepath.Join("../../providers", p.name, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(pagesDir, p.name+".md")
		made[file] = true
		compare(t, file, p.page(string(readme)))
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

// page is the page of a provider: its README, then what it declares and what of that is proven.
func (k known) page(readme string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%sproviders/%s/README.md, its declaration and docs/reports/contract. -->\n\n", pageMark, k.name)
	b.WriteString(strings.TrimRight(rebase(readme, "providers/"+k.name, "docs/providers"), "\n"))
	b.WriteString("\n\n## What was proven, on what, when\n\n")
	if len(k.results) == 0 {
		b.WriteString("Nothing yet: no results of the contract were kept. `virtual-kubelet contract --provider " + k.name + " --result FILE` makes them.\n")
	}
	for _, f := range k.results {
		fmt.Fprintf(&b, "On %s, %s, with the contract at version %s:\n\n", f.Backend, f.Date.Format(time.DateOnly), f.Version)
		b.WriteString(checks(f))
	}
	b.WriteString("\n## What it declares\n\n")
	if k.declared == nil {
		b.WriteString("Nothing before it runs: see above.\n")
		return b.String()
	}
	b.WriteString("With the default configuration; [what pods get](../reports/support.md) says what the words mean.\n\n")
	b.WriteString(capability.Table(capability.Named{Name: k.name, Declaration: *k.declared, Proven: k.proven()}))
	return b.String()
}

// checks sums up the checks of a run, and names those that failed or were skipped, and the declared features that are not proven.
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

// relative matches the target of a Markdown link that is no URL and no place on the page.
var relative = regexp.MustCompile(`\]\(([^)#:]+)(#[^):]*)?\)`)

// rebase lets the links of a text in one folder lead from another to where they led.
func rebase(text, from, to string) string {
	return relative.ReplaceAllStringFunc(text, func(link string) string {
		m := relative.FindStringSubmatch(link)
		target := path.Join(from, m[1])
		up := strings.Repeat("../", strings.Count(to, "/")+1)
		return "](" + up + target + m[2] + ")"
	})
}

func TestRebase(t *testing.T) {
	for in, want := range map[string]string{
		"see [a](../../examples/x) and [b](config.go)":   "see [a](../../examples/x) and [b](../../providers/p/config.go)",
		"[c](../other/README.md#limits)":                 "[c](../../providers/other/README.md#limits)",
		"[d](https://example.org/x) [e](#limits), not()": "[d](https://example.org/x) [e](#limits), not()",
	} {
		if got := rebase(in, "providers/p", "docs/providers"); got != want {
			t.Errorf("rebase(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestPage: who reads a page learns of every check that did not pass.
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
	page := k.page("# cloud\n\nThe [config](config.go).\n")
	for _, want := range []string{
		pageMark + "providers/cloud/README.md", "\n# cloud\n", "](../../providers/cloud/config.go)",
		"On an account in the north, 2026-01-02, with the contract at version v1:\n\n1 checks passed, 1 failed, 1 were skipped.\n",
		"| `a/three` | failed | got 1\\|2 |\n| `a/two` | skipped | no shell |\n| feature Sysctls | not proven | no kernel |\n", "| proven |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if page := (known{name: "new"}).page("# new\n"); !strings.Contains(page, "Nothing yet") || !strings.Contains(page, "Nothing before it runs") {
		t.Errorf("the page of a provider without results and declaration: %s", page)
	}
}
