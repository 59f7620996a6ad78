// SPDX-License-Identifier: Apache-2.0

package process

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// TestDefaultThresholdsAreThoseOfAnEmptyNode checks that pods that filled the disk before a restart do not lower
// the default thresholds.
func TestDefaultThresholdsAreThoseOfAnEmptyNode(t *testing.T) {
	dir := t.TempDir()
	empty := &Runtime{config: Config{StateDir: dir}}
	first := empty.evictionHard(t.Context())
	for _, signal := range []string{"memory.available", "nodefs.available", "imagefs.available"} {
		if first[signal] == "" || first[signal] == "0" {
			t.Errorf("%s: got %q, want a threshold by default", signal, first[signal])
		}
	}
	earlier := `{"nodefs.available":"12345"}`
	if err := os.WriteFile(filepath.Join(dir, evictionFile), []byte(earlier), 0o600); err != nil {
		t.Fatal(err)
	}
	used := &Runtime{config: Config{StateDir: dir}, sandboxes: map[string]*sandbox{"a": nil}}
	if got := used.evictionHard(t.Context()); !maps.Equal(got, map[string]string{"nodefs.available": "12345"}) {
		t.Errorf("with pods of an earlier daemon: got %v, want what that one had", got)
	}
	if got := empty.evictionHard(t.Context()); got["nodefs.available"] == "12345" || got["memory.available"] == "" {
		t.Errorf("without pods: got %v, want what is available now", got)
	}
	for _, set := range []map[string]string{{}, {"nodefs.available": "1Gi"}} {
		r := &Runtime{config: Config{StateDir: dir, EvictionHard: set}}
		if got := r.evictionHard(t.Context()); got == nil || !maps.Equal(got, set) {
			t.Errorf("evictionHard %v: got %v, want the value only", set, got)
		}
	}
}
