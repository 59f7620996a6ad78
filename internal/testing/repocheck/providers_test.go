// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProvidersKeepTheirShape(t *testing.T) {
	tree := loadArchive(t, filepath.Join("testdata", "providers.txtar"))
	got := tree.Providers(Shape{
		Dir: "plugs", Emulators: "servers", Program: "program",
		Files: []string{"provider.go", "mapping.go", "client.go"},
		Entry: []string{"provider.go", "driver.go"},
		Done:  map[string][]string{"runtime": {"mapping.go"}, "kit": {"provider.go"}},
		Excused: map[string]map[string]string{
			"good":    {"client.go": "it has no service"},
			"kubelet": {"client.go": "it has no service"},
			"odd":     {"provider.go": "it is odd"},
			"gone":    {},
		},
	})
	want := []string{
		"plugs: there is no provider gone to be excused from anything",
		`program/provider_kubelet.go: holds more or less than "package main import \"example.org/lib/plugs/kubelet\" func init() { builtIn = append(builtIn, kubelet.Provider) }"`,
		"program/provider_kubelet.go: want //go:build !no_kubelet, to build the program without it",
		"plugs/odd/provider.go: is there, though the provider is excused from it (it is odd): take that off",
		"plugs/odd/mapping.go: is missing: every provider has it",
		"plugs/odd/client.go: is missing: every provider has it",
		"plugs/odd/provider.go: does not export func Provider() cli.Provider",
		"program/provider_odd.go: is missing, so the program does not have the provider",
		"plugs/odd/inner/inner.go:3: provider odd must not import provider good: move what they share to a public package, or to plugs/internal",
		"plugs/odd/provider.go:4: provider odd must not import provider good: move what they share to a public package, or to plugs/internal",
		"plugs/odd/provider.go:7: provider odd must not import the emulator plugs/servers/cloud: only tests may",
		"plugs/odd/inner/inner.go:5: cloud.example/AccessKeyID names a credential like an annotation: take it from the configuration, as a config.Secret",
		"plugs/odd/provider.go:12: cloud.example/api-key names a credential like an annotation: take it from the configuration, as a config.Secret",
		"plugs/odd/provider.go:12: a secret of a provider comes from its configuration alone: give the field the type config.Secret",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("breaches (-want +got):\n%s", diff)
	}
	if got := tree.Providers(Shape{Dir: "none"}); len(got) != 1 {
		t.Errorf("a folder without providers: got %q", got)
	}
}
