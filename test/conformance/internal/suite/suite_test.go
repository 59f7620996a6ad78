// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"regexp"
	"testing"
)

func TestAgainSelectsNamesAsTheyAre(t *testing.T) {
	again := Again([]string{"[sig-node] Pods run (once) [Conformance]", "[sig-apps] Job ends"})
	selected := regexp.MustCompile(again.Focus)
	for name, want := range map[string]bool{
		"Kubernetes e2e suite [sig-node] Pods run (once) [Conformance]": true,
		"Kubernetes e2e suite [sig-apps] Job ends":                      true,
		"Kubernetes e2e suite [sig-apps] Job ends twice":                false,
		"Kubernetes e2e suite s Pods run once C":                        false,
	} {
		if got := selected.MatchString(name); got != want {
			t.Errorf("%s: selected %t, want %t", name, got, want)
		}
	}
	if again.Procs != 1 || again.Skip != "" {
		t.Errorf("got %d at a time without %q, want one by one and all of them", again.Procs, again.Skip)
	}
}

// A cluster is certified for the whole list. So the two sets together contain every test, and have no test in
// common.
func TestTheWholeListIsWhole(t *testing.T) {
	whole, serial := Sets()["conformance"], Sets()["conformance-serial"]
	for _, name := range []string{
		"[sig-node] Pods run [Conformance]", "[sig-api-machinery] Servers with support for API chunking should support continue listing from the last key [Slow] [Conformance]",
		"[sig-api-machinery] Aggregator Should be able to support the 1.17 Sample API Server using the current Aggregator [LinuxOnly] [Conformance]",
		"[sig-apps] Daemon set [Serial] should run [Conformance]", "[sig-node] NoExecuteTaintManager evicts [Conformance] [Serial] [Disruptive]",
	} {
		n := 0
		for _, set := range []Set{whole, serial} {
			if regexp.MustCompile(set.Focus).MatchString(name) && (set.Skip == "" || !regexp.MustCompile(set.Skip).MatchString(name)) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s is in %d sets of the whole list, want 1", name, n)
		}
	}
}
