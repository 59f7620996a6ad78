// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

const provisionedName = "pvc-0f1e2d3c-aaaa-bbbb-cccc-000000000001"

func provisioning(t *testing.T) (w *world, base string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	base = filepath.Join(dir, "made")
	return newWorld(t, func(c *Config) { c.Provision = base }), base
}

func left(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestAVolumeIsMadeAndMounted(t *testing.T) {
	w, base := provisioning(t)
	path, err := w.MakeVolume(provisionedName)
	if err != nil || path != filepath.Join(base, provisionedName) || w.mode(path).Perm() != 0o777 {
		t.Fatalf("got %s with mode %v, %v", path, w.mode(path), err)
	}
	if got := w.mode(base).Perm(); got != 0o700 {
		t.Errorf("other users of the machine: mode %o", got)
	}
	if err := os.WriteFile(filepath.Join(path, "data"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := w.MakeVolume(provisionedName); err != nil || again != path || w.read(path, "data") != "kept" {
		t.Errorf("a second time: %s, %v", again, err)
	}
	w.UseClaims(&binder{volume: localVolume(path)})
	pod := podOf("u", claimVolume("v"))
	if err := w.Check(pod); err != nil {
		t.Error(err)
	}
	w.setup(pod)
	if got, _, err := w.mountOf(pod); got != path || err != nil {
		t.Errorf("mounted is %s, %v", got, err)
	}
}

func TestAVolumeIsRemovedWithAllThatIsInItAndNothingElse(t *testing.T) {
	w, base := provisioning(t)
	path, err := w.MakeVolume(provisionedName)
	if err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, strings.Repeat("d/", 300)), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(path, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(base, "another"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a removed volume may be removed again
		if err := w.RemoveVolume(provisionedName); err != nil {
			t.Fatal(err)
		}
	}
	if got := left(t, base); len(got) != 1 || got[0] != "another" || w.read(outside) != "kept" {
		t.Errorf("left is %q", got)
	}
}

// TestARemovalThatWasCutOffIsFinished: an interrupted removal has moved the volume, and perhaps parts of it. The
// next removal completes it.
func TestARemovalThatWasCutOffIsFinished(t *testing.T) {
	w, base := provisioning(t)
	for _, dir := range []string{provisionedName + "/deep/er", provisionedName + ".deep-7/x"} {
		if err := os.MkdirAll(filepath.Join(base, provisionedName+removing, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.RemoveVolume(provisionedName); err != nil {
		t.Fatal(err)
	}
	if got := left(t, base); len(got) > 0 {
		t.Errorf("left is %q", got)
	}
}

func TestNamesThatAreNoVolumes(t *testing.T) {
	w, base := provisioning(t)
	if err := os.Mkdir(filepath.Join(base, "other"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", "other", "pvc-", "pvc-../other", "pvc-a/b", "../made/other", "pvc-a" + removing, "pvc--a", "/etc"} {
		if _, err := w.MakeVolume(name); !errdefs.IsInvalidInput(err) {
			t.Errorf("%q is made: %v", name, err)
		}
		if err := w.RemoveVolume(name); !errdefs.IsInvalidInput(err) {
			t.Errorf("%q is removed: %v", name, err)
		}
	}
	if got := left(t, base); len(got) != 1 {
		t.Errorf("left is %q", got)
	}
	none := newWorld(t)
	if _, err := none.MakeVolume(provisionedName); !errdefs.IsInvalidInput(err) || none.Provisions() {
		t.Errorf("without a directory: %v", err)
	}
}

func TestALinkIsNoVolume(t *testing.T) {
	w, base := provisioning(t)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "data"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(base, provisionedName)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.MakeVolume(provisionedName); err == nil {
		t.Error("it is taken for the volume")
	}
	if err := w.RemoveVolume(provisionedName); err != nil {
		t.Error(err)
	}
	if got := left(t, outside); len(got) != 1 {
		t.Errorf("outside is %q", got)
	}
}
