// SPDX-License-Identifier: Apache-2.0

// Package durable writes small files that a later process relies on.
//
// The guarantee: whoever reads a file finds the old content or the new, whole, also after the machine lost
// power; and once a write has returned, what is found is the new.
//
// What is said at the end of something cannot wait until a disk that is full has room again, and is why it has room again, perhaps:
// KeepRoom at the beginning makes WriteLastJSON succeed then.
//
// What surprises: each write waits for the disk twice, for the file and for the name of it. That is for
// records, a few for each pod, and not for what changes all the time.
package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// newPrefix begins the names of files that are being written.
const newPrefix = ".new-"

// flush waits until the disk has what was written; tests look at what is there then.
var flush = (*os.File).Sync

// ReadJSON reads the file at path into v. An error tells which file it is about; for one that is not
// there it is fs.ErrNotExist.
func ReadJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// WriteJSON replaces the file at path by v.
func WriteJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return WriteFile(path, data)
}

// WriteFile replaces the file at path, which only its owner may read then.
func WriteFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, newPrefix)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = flush(f)
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	return SyncDir(dir)
}

// SyncDir makes the names in dir last, as those of files that were renamed into it.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(flush(f), f.Close()); err != nil {
		return fmt.Errorf("write the directory %s to disk: %w", dir, err)
	}
	return nil
}

// Full tells whether an error is that a disk, or what of it somebody may have, has no room left. Who asked another process knows
// it by words only.
func Full(err error) bool {
	if err == nil {
		return false
	}
	for _, full := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, full) || strings.Contains(err.Error(), full.Error()) {
			return true
		}
	}
	return false
}

// Passing tells whether an error is of the moment, and not of what was read: the process, or the machine, has no room to read
// anything. Nothing follows from it for what is on the disk.
func Passing(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}
