// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// defect is a mistake that providers made, and the check that finds it.
type defect struct {
	name   string
	caught string   // the check that finds it
	also   []string // other checks that it may break, some by chance
	races  bool     // the mistake is a data race
	wrap   func(ctx context.Context, p *inprocess.Provider) node.PodLifecycleHandler
}

var only = flag.String("defect", "", "try this defect only")

// TestDefects breaks a good provider, one mistake at a time. The check for this mistake catches it, and no other
// check fails.
func TestDefects(t *testing.T) {
	all := slices.Concat(callDefects(), listDefects(), reportDefects(), errorDefects(), streamDefects(), podDefects())
	if len(all) < 25 {
		t.Errorf("there are %d defects, want 25 at least", len(all))
	}
	known := map[string]bool{}
	for _, k := range providertest.Checks() {
		known[k.Name] = true
	}
	for _, d := range all {
		t.Run(strings.ReplaceAll(d.name, " ", "-"), func(t *testing.T) {
			if *only != "" && *only != d.name {
				t.Skip("another one is tried")
			}
			if d.races && raceDetector {
				t.Skip("the race detector finds it first")
			}
			if !known[d.caught] && !strings.HasPrefix(d.caught, "feature ") {
				t.Fatalf("there is no check %s", d.caught)
			}
			caught, unexpected := d.judged(t)
			if !caught || len(unexpected) > 0 { // the order of simultaneous events may matter once, but not twice
				late, again := d.judged(t)
				caught = caught || late
				unexpected = slices.DeleteFunc(unexpected, func(name string) bool { return !slices.Contains(again, name) })
			}
			if !caught {
				t.Errorf("%s does not fail", d.caught)
			}
			if len(unexpected) > 0 {
				t.Errorf("caught by %q too, want %s, and %q at most", unexpected, d.caught, d.also)
			}
			t.Logf("a provider with %s is caught by %s", d.name, d.caught)
		})
	}
}

// judged runs the contract with the defect. It reports whether the defect is caught, and returns the failed
// checks that the defect is not known to break.
func (d *defect) judged(t *testing.T) (caught bool, unexpected []string) {
	t.Helper()
	r := verify(t, inProcess(d.wrap))
	failed := r.Failed()
	for _, name := range failed {
		feature := strings.HasPrefix(name, "feature ") // fails together with its check
		if name != d.caught && !feature && !slices.Contains(d.also, name) {
			unexpected = append(unexpected, name)
		}
	}
	for _, k := range r.Results {
		if slices.Contains(unexpected, k.Name) {
			t.Logf("%s: %s", k.Name, k.Detail)
		}
	}
	return slices.Contains(failed, d.caught), unexpected
}
