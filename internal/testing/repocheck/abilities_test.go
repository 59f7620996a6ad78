// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAbilitiesAreListed(t *testing.T) {
	tree := loadArchive(t, filepath.Join("testdata", "abilities.txtar"))
	got := tree.Abilities(Abilities{
		List: "core/abilities.go", In: "far", Type: "Provider", Field: "New", Guide: "guide.md",
		AskedIn: []string{"core", "far"}, Others: map[string]string{"far.Pong": "a ball", "far.Other": "a net"},
	})
	want := []string{
		"core/core.go:18: a provider is asked for an ability without a name: declare it",
		"core/core.go:21: a provider is asked for an ability without a name: declare it",
		"nothing is asked for far.Other (a net): take it off",
		"core/abilities.go: does not list core.Walker, which a provider is asked for at core/core.go:14",
		"far: the comment of Provider.New does not name core.Walker, which a provider is asked for at core/core.go:14",
		"core/abilities.go: does not list far.Configurer, which a provider is asked for at far/far.go:18",
		"far: the comment of Provider.New does not name Ping, which a provider is asked for at core/core.go:13",
		"core/abilities.go: declares core.Stale, which nobody asks a provider for",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("breaches (-want +got):\n%s", diff)
	}
	got = tree.Abilities(Abilities{List: "core/none.go", In: "far", Type: "Provider", Field: "Old", Guide: "guide.md", Others: map[string]string{}})
	if diff := cmp.Diff([]string{"far: there is no Provider with a commented field Old", "guide.md: has no link to core/none.go, which lists all abilities"}, got); diff != "" {
		t.Errorf("breaches (-want +got):\n%s", diff)
	}
}
