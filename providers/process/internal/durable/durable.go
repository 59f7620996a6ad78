// SPDX-License-Identifier: Apache-2.0

// Package durable writes small files atomically and durably.
//
// The guarantee: a reader finds the complete old content or the complete new content, even after a power loss.
// After a write has returned, a reader finds the new content.
//
// The last record of a pod must be written even if the disk is full, because the removal of the pod may depend on
// it and may free the disk. KeepRoom reserves space in advance, so that a later WriteLastJSON succeeds on a full
// disk.
//
// Note: each write syncs twice, the file and its directory. That is fine for a few records of each pod,
// but too slow for data that changes constantly.
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

// newPrefix is the prefix of the names of unfinished files.
const newPrefix = ".new-"

// flush waits until the data is on the disk. Tests replace it, to see the files at this point.
var flush = (*os.File).Sync

// ReadJSON reads the file at path into v. The error names the file. It is fs.ErrNotExist if the file does not
// exist.
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

// WriteFile replaces the file at path. Only the owner can read the new file.
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

// SyncDir syncs a directory, so that the names of new and renamed files are durable.
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

// Full reports whether an error means that the disk, or a user's quota, is full. It also checks the text, because
// an error from another process has only a text.
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

// Passing reports whether an error is temporary and not about the file: the process or the machine lacks
// resources, such as file descriptors.
func Passing(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}
