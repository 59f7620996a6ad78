// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	// roomSuffix is the suffix of the file with reserved room for another file.
	roomSuffix = ".room"
	// beginSuffix is the suffix of the file with reserved room for the first record.
	beginSuffix = ".begin"
	// roomSize is the maximum size of a last record.
	roomSize = 4 << 10
)

// KeepRoom reserves the disk space for a last record in the file at path.
func KeepRoom(path string) error { return keep(path + roomSuffix) }

func keep(room string) error {
	// The file must not be sparse, because a hole reserves no space. There is no sync: after a power loss no
	// process needs the room.
	if err := os.WriteFile(room, bytes.Repeat([]byte{' '}, roomSize), 0o600); err != nil {
		return fmt.Errorf("reserve disk space for later records: %w", err)
	}
	return nil
}

// KeepRoomToBegin reserves room for the record of a start: a container may fill the disk before its start is
// recorded.
func KeepRoomToBegin(path string) error { return keep(path + beginSuffix) }

// WriteBeginJSON replaces the file at path by v. If the disk is full, it uses the room of KeepRoomToBegin. It
// always releases that room.
func WriteBeginJSON(path string, v any) error {
	defer os.Remove(path + beginSuffix) // if Remove fails, the file goes with the directory
	return writeKept(path, path+beginSuffix, v)
}

// WriteLastJSON replaces the file at path by v. If KeepRoom reserved room, it succeeds once even on a full disk,
// except on copy-on-write file systems.
func WriteLastJSON(path string, v any) error { return writeKept(path, path+roomSuffix, v) }

func writeKept(path, room string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	err = WriteFile(path, data)
	if !Full(err) || len(data) > roomSize {
		return err
	}
	if inRoom := writeInRoom(path, room, data); inRoom != nil {
		return errors.Join(err, inRoom)
	}
	return nil
}

// writeInRoom overwrites the reserved file, and renames it to path. It fills the rest with blanks, which JSON
// ignores.
func writeInRoom(path, room string, data []byte) error {
	// Rename the file first, so that another writer cannot use it at the same time.
	own := filepath.Join(filepath.Dir(path), newPrefix+rand.Text())
	if err := os.Rename(room, own); err != nil {
		return err
	}
	f, err := os.OpenFile(own, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(append(data, bytes.Repeat([]byte{' '}, roomSize-len(data))...))
		if err == nil {
			err = flush(f)
		}
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = os.Rename(own, path)
	}
	if err != nil {
		return fmt.Errorf("write %s in the room that was kept: %w", path, errors.Join(err, os.Rename(own, room)))
	}
	return SyncDir(filepath.Dir(path))
}
