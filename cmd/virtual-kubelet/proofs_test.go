// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
)

const resultsDir = "../../docs/reports/contract"

// known has the declaration and the contract results of a provider.
type known struct {
	name     string
	declared *capability.Declaration // nil: there is no declaration before the provider runs
	results  []providertest.ResultFile
}

// read returns the providers of the program by name, with their stored contract results.
func read(t *testing.T) []known {
	t.Helper()
	all, err := gather(providers(), resultsDir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func gather(from []cli.Provider, dir string) (all []known, err error) {
	for _, p := range from {
		k := known{name: p.Name}
		if p.Capabilities != nil {
			d, err := p.Capabilities("")
			if err != nil {
				return nil, fmt.Errorf("provider %s without a configuration: %w", p.Name, err)
			}
			k.declared = &d
		}
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b known) int { return strings.Compare(a.name, b.name) })
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		f, err := providertest.ReadResultFile(filepath.Join(dir, file.Name()))
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(k known) bool { return k.name == f.Provider })
		switch {
		case i < 0:
			return nil, fmt.Errorf("%s is about the provider %q, which the program does not have", file.Name(), f.Provider)
		case f.Partial:
			return nil, fmt.Errorf("%s is of a run that left checks out: it proves nothing about the provider as a whole", file.Name())
		}
		all[i].results = append(all[i].results, f)
	}
	return all, nil
}

// proven returns the declared features that passed a check.
func (k known) proven() map[capability.Feature]bool {
	proven := map[capability.Feature]bool{}
	for _, f := range k.results {
		for _, feature := range f.Features {
			if feature.Outcome == providertest.Passed {
				proven[feature.Feature] = true
			}
		}
	}
	return proven
}

// proofs returns the rows of the table of proven features.
func (k known) proofs() string {
	link := fmt.Sprintf("[%s](providers/%s.md)", k.name, k.name)
	if len(k.results) == 0 {
		return fmt.Sprintf("| %s | nothing yet | | | | | | |\n", link)
	}
	var rows strings.Builder
	for _, f := range k.results {
		n := map[providertest.Outcome]int{}
		for _, check := range f.Checks {
			n[check.Outcome]++
		}
		proven := 0
		for _, feature := range f.Features {
			if feature.Outcome == providertest.Passed {
				proven++
			}
		}
		features := "it declares nothing"
		if len(f.Features) > 0 {
			features = fmt.Sprintf("%d of %d", proven, len(f.Features))
		}
		fmt.Fprintf(&rows, "| %s | %s | %s | %s | %d | %d | %d | %s |\n", link, f.Backend, f.Date.Format(time.DateOnly), f.Version,
			n[providertest.Passed], n[providertest.Failed], n[providertest.Skipped], features)
	}
	return rows.String()
}

// TestGather: a page never claims more than the result files.
func TestGather(t *testing.T) {
	program := []cli.Provider{{Name: "cloud", Capabilities: func(string) (capability.Declaration, error) {
		return capability.Only(capability.DNS, capability.EmptyDir), nil
	}}}
	const head = `{"apiVersion": "contract.virtual-kubelet.io/v1alpha1", "kind": "ContractResults", "backend": "b", "date": "2026-01-02T03:04:05Z", `
	for name, tt := range map[string]struct{ file, fails string }{
		"whole": {head + `"provider": "cloud", "version": "v1", "checks": [{"name": "a/b", "outcome": "passed"}, {"name": "a/c", "outcome": "failed"}], ` +
			`"features": [{"feature": "DNS", "outcome": "passed", "detail": "a/b"}, {"feature": "EmptyDir", "outcome": "failed", "detail": "a/c"}]}`, ""},
		"partial":          {head + `"provider": "cloud", "partial": true, "checks": []}`, "left checks out"},
		"another provider": {head + `"provider": "clout", "checks": []}`, `the provider "clout", which the program does not have`},
		"nonsense":         {"nonsense", "read results of the contract"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "cloud.json"), []byte(tt.file), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := gather(program, dir)
		if tt.fails != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%s: got %v, want %q", name, err, tt.fails)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if proven := all[0].proven(); len(proven) != 1 || !proven[capability.DNS] {
			t.Errorf("%s: proven are %v, want what passed", name, proven)
		}
		if want := "| [cloud](providers/cloud.md) | b | 2026-01-02 | v1 | 1 | 1 | 0 | 1 of 2 |\n"; all[0].proofs() != want {
			t.Errorf("%s: got %q, want %q", name, all[0].proofs(), want)
		}
	}
	if none := (known{name: "cloud"}).proofs(); !strings.Contains(none, "| nothing yet |") {
		t.Errorf("without results: got %q", none)
	}
}
