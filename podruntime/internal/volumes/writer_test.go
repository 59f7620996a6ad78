// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// filesOf returns n files that all have the same text.
func filesOf(n int, text string) map[string]file {
	files := map[string]file{}
	for i := range n {
		files[fmt.Sprintf("d%d/f%d", i%2, i)] = file{data: []byte(text), mode: 0o644}
	}
	return files
}

// visible returns the names and contents of the files in a volume, except for entries that begin with "..".
func visible(t *testing.T, dir string) string {
	t.Helper()
	var out []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	versions := 0
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, "..") {
			versions++
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			text = []byte(err.Error())
		}
		out = append(out, name+"="+string(text))
	}
	if versions != 2 {
		t.Errorf("%d entries that are no files: want ..data and one version: %v", versions, entries)
	}
	return strings.Join(out, " ")
}

// TestACrashAtAnyPointIsMadeGood: projectFiles completes a volume after a process ended at any point within projectFiles.
func TestACrashAtAnyPointIsMadeGood(t *testing.T) {
	old, next := map[string]file{"a": {data: []byte("1"), mode: 0o644}, "gone": {mode: 0o644}}, map[string]file{"a": {data: []byte("2"), mode: 0o644}, "b": {data: []byte("3"), mode: 0o644}}
	for point, crash := range map[string]func(*os.Root) error{
		"nothing written": func(root *os.Root) error { return root.Mkdir("..2026_01_01_00_00_00.x", 0o755) },
		"half written": func(root *os.Root) error {
			if err := root.Mkdir("..2026_01_01_00_00_00.x", 0o755); err != nil {
				return err
			}
			return root.WriteFile("..2026_01_01_00_00_00.x/a", []byte("hal"), 0o600)
		},
		"not published": func(root *os.Root) error {
			name, err := writeVersion(root, next, nil)
			if err != nil {
				return err
			}
			return root.Symlink(name, nextLink)
		},
		"published, not linked": func(root *os.Root) error {
			name, err := writeVersion(root, next, nil)
			if err != nil {
				return err
			}
			return publishVersion(root, name)
		},
		"the old one half removed": func(root *os.Root) error {
			before := currentVersion(root)
			name, err := writeVersion(root, next, nil)
			if err != nil {
				return err
			}
			if err := publishVersion(root, name); err != nil {
				return err
			}
			return root.Remove(before + "/a")
		},
		"the version lost, with a disk perhaps": func(root *os.Root) error { return root.RemoveAll(currentVersion(root)) },
		"a file of the version lost":            func(root *os.Root) error { return root.Remove(currentVersion(root) + "/gone") },
		"a link that is none of ours": func(root *os.Root) error {
			if err := root.Remove(currentLink); err != nil {
				return err
			}
			return root.Symlink("../../../..", currentLink)
		},
	} {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			root := openRoot(t, dir)
			if err := projectFiles(root, old, nil); err != nil {
				t.Fatal(err)
			}
			if err := crash(root); err != nil {
				t.Fatal(err)
			}
			if err := projectFiles(root, next, nil); err != nil {
				t.Fatal(err)
			}
			if got := visible(t, dir); got != "a=2 b=3" {
				t.Errorf("after the crash: %s", got)
			}
		})
	}
}

// TestReadersSeeOneVersion reads while the volume changes: files are complete, and the files in an opened ..data belong to one version.
func TestReadersSeeOneVersion(t *testing.T) {
	const files, changes = 8, 12
	dir := t.TempDir()
	root := openRoot(t, dir)
	if err := projectFiles(root, filesOf(files, strings.Repeat("0", 5000)), nil); err != nil {
		t.Fatal(err)
	}
	var done atomic.Bool
	var whole atomic.Int64
	var group sync.WaitGroup
	defer group.Wait()
	defer done.Store(true)
	for range 2 {
		group.Go(func() {
			for !done.Load() {
				// A path through the link exists at any time, and its file is complete.
				if text, err := os.ReadFile(filepath.Join(dir, "d1/f1")); err == nil && (len(text) != 5000 || strings.Trim(string(text), string(text[:1])) != "") {
					t.Errorf("a torn file of %d bytes", len(text))
					return
				}
				data, err := os.OpenRoot(filepath.Join(dir, currentLink))
				if err != nil {
					continue // the file was moved during the lookup, and the next lookup finds it
				}
				if all := readAll(data); len(all) > 0 {
					whole.Add(1)
					if slices.Sort(all); all[0] != all[len(all)-1] {
						t.Errorf("versions %.1s and %.1s at once", all[0], all[len(all)-1])
					}
				}
				data.Close()
			}
		})
	}
	for i := range changes {
		if err := projectFiles(root, filesOf(files, strings.Repeat(string(rune('a'+i%26)), 5000)), nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; whole.Load() == 0; i++ {
		if err := projectFiles(root, filesOf(files, strings.Repeat(string(rune('A'+i%26)), 5000)), nil); err != nil {
			t.Fatal(err)
		}
	}
}

// readAll returns the texts of a version, or nothing if the version is removed in the meantime.
func readAll(data *os.Root) []string {
	var all []string
	err := fs.WalkDir(data.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := data.ReadFile(name)
		all = append(all, string(text))
		return err
	})
	if err != nil || len(all) != 8 {
		return nil
	}
	return all
}

// TestAWriterFollowsNoLinkOut: a container that can write the volume, perhaps a privileged one, makes links in
// it. projectFiles follows none of them out of the volume.
func TestAWriterFollowsNoLinkOut(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "precious"), []byte("keep"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	root := openRoot(t, dir)
	for _, name := range []string{"..evil", nextLink, currentLink} {
		if err := os.Symlink(outside, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := projectFiles(root, map[string]file{"a": {data: []byte("1"), mode: 0o600}}, nil); err != nil {
		t.Fatal(err)
	}
	if got := visible(t, dir); got != "a=1" {
		t.Errorf("the volume: %s", got)
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside: %v, %v", entries, err)
	}
}

func TestPathsOfFilesStayInTheVolume(t *testing.T) {
	for _, name := range []string{"", "/abs", "..", "a/../b", "..data", "..x", "./..data", strings.Repeat("n", 256), strings.Repeat("d/", 2100) + "f"} {
		if err := projectFiles(openRoot(t, t.TempDir()), map[string]file{name: {}}, nil); err == nil {
			t.Errorf("a file %.20q was written", name)
		}
	}
}
