// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestChartTakesValuesOfNewProviders renders the chart with the values that new-provider writes.
func TestChartTakesValuesOfNewProviders(t *testing.T) {
	for template, want := range map[string][]string{
		"vk-skeleton": {"provider: skeleton", "kind: SkeletonProviderConfiguration", "registry.example/vk-skeleton:development"},
		"python":      {"provider: plugin", "kind: PluginProviderConfiguration", "endpoint: unix:///run/plugin/", "registry.example/vk-skeleton-plugin:development"},
	} {
		data, err := os.ReadFile(filepath.Join("..", "cmd", "virtual-kubelet", "internal", "scaffold", template, "values.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		given := values{}
		if err := yaml.UnmarshalStrict(data, &given); err != nil {
			t.Fatal(err)
		}
		text := mustRender(t, "skeleton", given)
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: the manifests lack %q:\n%s", template, part, text)
			}
		}
	}
}
