// SPDX-License-Identifier: Apache-2.0

package jsonfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFileIsWholeAndPrivate checks that only the owner can read a file, and that a failed write keeps the old content and leaves no temporary
// file. Damaged and missing files give different errors, without any content.
func TestFileIsWholeAndPrivate(t *testing.T) {
	for name, write := range map[string]func(string, any) error{"Write": Write, "Show": Show} {
		dir := t.TempDir()
		path := filepath.Join(dir, "a.json")
		var got map[string]int
		if err := Read(path, &got); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: without a file: got %v", name, err)
		}
		if err := errors.Join(write(path, map[string]int{"n": 1}), write(path, map[string]int{"n": 2}), Read(path, &got)); err != nil || got["n"] != 2 {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: the file is %v, %v", name, info, err)
		}
		if err := write(path, func() {}); err == nil {
			t.Errorf("%s: a function was written", name)
		}
		if err := write(filepath.Join(dir, "none", "a.json"), 1); err == nil {
			t.Errorf("%s: a file was written into no directory", name)
		}
		all, err := os.ReadDir(dir)
		if err != nil || len(all) != 1 {
			t.Errorf("%s: the directory has %v, %v", name, all, err)
		}
		if err := os.WriteFile(path, []byte(`{"n": "secret"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Read(path, &got); !errors.Is(err, ErrDamaged) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: damaged: got %v", name, err)
		}
	}
}
