// SPDX-License-Identifier: Apache-2.0

// Package jsonfile writes small files in JSON that other processes read.
//
// The guarantee: a reader finds the old content or the new content, complete. Only the user of this process can read a file.
//
// Note: a reader on another machine may see a file of Show before the file is on stable storage.
package jsonfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrDamaged means that a file is readable but has the wrong content.
var ErrDamaged = errors.New("the file is damaged")

// Read reads a file. The error does not quote the file.
func Read(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("read %s: %w: %T", filepath.Base(path), ErrDamaged, err)
	}
	return nil
}

// Write writes a file. The file is complete or unchanged, even after a crash of a file server.
func Write(path string, v any) error {
	return write(path, v, func(f *os.File) error {
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
		return os.Rename(f.Name(), path)
	})
}

// Show is Write for waiting readers: they see the file before it is on stable storage. It is on stable storage when Show returns.
func Show(path string, v any) error {
	return write(path, v, func(f *os.File) error {
		if err := os.Rename(f.Name(), path); err != nil {
			return errors.Join(err, f.Close())
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

func write(path string, v any, finish func(*os.File) error) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	// Processes on several machines may have the same ID.
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = finish(f)
	} else {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		_ = os.Remove(f.Name()) // fails if the file already has its final name
	}
	return err
}
