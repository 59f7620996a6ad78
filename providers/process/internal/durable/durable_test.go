// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestWhatIsWrittenSurvivesALossOfPower checks the disk at each sync: a file has its content before its name,
// and its name before the write returns.
func TestWhatIsWrittenSurvivesALossOfPower(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	if err := os.WriteFile(path, []byte(`"old"`), 0o600); err != nil {
		t.Fatal(err)
	}
	var events []string
	flush = func(f *os.File) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		named, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if info.IsDir() {
			events = append(events, "directory, named "+string(named))
			return nil
		}
		content, err := os.ReadFile(f.Name())
		events = append(events, "file with "+string(content)+", named "+string(named))
		return err
	}
	t.Cleanup(func() { flush = (*os.File).Sync })
	if err := WriteJSON(path, "new"); err != nil {
		t.Fatal(err)
	}
	want := []string{`file with "new", named "old"`, `directory, named "new"`}
	if len(events) != len(want) || events[0] != want[0] || events[1] != want[1] {
		t.Errorf("the disk was waited for with %q, want %q", events, want)
	}
}

// TestADiskThatFailsKeepsTheOldFile checks that a failed write keeps the old file, and leaves no temporary file.
func TestADiskThatFailsKeepsTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "record.json")
	if err := WriteJSON(path, "old"); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the disk is broken")
	flush = func(*os.File) error { return broken }
	t.Cleanup(func() { flush = (*os.File).Sync })
	if err := WriteJSON(path, "new"); !errors.Is(err, broken) {
		t.Errorf("got %v, want that the disk is broken", err)
	}
	var got string
	if err := ReadJSON(path, &got); err != nil || got != "old" {
		t.Errorf("got %q and %v, want the old content", got, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("beside it is %v, %v", entries, err)
	}
}

func TestOnlyALackOfRoomPasses(t *testing.T) {
	for err, want := range map[error]bool{
		&os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}: true, &os.PathError{Op: "open", Path: "x", Err: syscall.ENFILE}: true,
		&os.PathError{Op: "read", Path: "x", Err: syscall.ENOMEM}: true,
		&os.PathError{Op: "read", Path: "x", Err: syscall.EIO}:    false, os.ErrNotExist: false,
	} {
		if got := Passing(err); got != want {
			t.Errorf("%v: got %t, want %t", err, got, want)
		}
	}
	if Passing(nil) {
		t.Error("no error passes")
	}
}
