// SPDX-License-Identifier: Apache-2.0

package statsv1alpha1_test

import (
	"go/types"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestEveryNameIsHere: this package has every exported name that all supported versions of the kubelet's package
// have, with the same type.
func TestEveryNameIsHere(t *testing.T) {
	const (
		kubelet = "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
		ours    = "github.com/virtual-kubelet/virtual-kubelet/node/api/statsv1alpha1"
	)
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedTypes}, kubelet, ours)
	if err != nil || len(loaded) != 2 {
		t.Fatalf("load %s and %s: %v", kubelet, ours, err)
	}
	scopes := map[string]*types.Scope{}
	for _, p := range loaded {
		scopes[p.PkgPath] = p.Types.Scope()
	}
	names := scopes[kubelet].Names()
	if len(names) < 20 {
		t.Fatalf("got %d names in %s", len(names), kubelet)
	}
	for _, name := range names {
		want := scopes[kubelet].Lookup(name)
		if !want.Exported() || name == "VolumeHealthStats" { // newer versions no longer have it, so the package cannot alias it
			continue
		}
		got := scopes[ours].Lookup(name)
		if got == nil {
			t.Errorf("%s is missing", name)
		} else if !types.Identical(types.Unalias(got.Type()), types.Unalias(want.Type())) {
			t.Errorf("%s is a %s, want %s", name, got.Type(), want.Type())
		}
	}
}
