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
	// roomSuffix ends the name of the file that keeps room for another one.
	roomSuffix = ".room"
	// beginSuffix ends that of what is said at the beginning.
	beginSuffix = ".begin"
	// roomSize is what the last content may have.
	roomSize = 4 << 10
)

// KeepRoom takes of the disk now what a last content of the file at path needs.
func KeepRoom(path string) error { return keep(path + roomSuffix) }

func keep(room string) error {
	// No file with a hole: that has no room. A loss of power ends what has something to say, so the disk is not waited for.
	if err := os.WriteFile(room, bytes.Repeat([]byte{' '}, roomSize), 0o600); err != nil {
		return fmt.Errorf("keep room for what is to be said later: %w", err)
	}
	return nil
}

// KeepRoomToBegin takes room for one more content besides: what begins may fill the disk before that is said.
func KeepRoomToBegin(path string) error { return keep(path + beginSuffix) }

// WriteBeginJSON replaces the file at path by v in the room that KeepRoomToBegin kept, or gives that back.
func WriteBeginJSON(path string, v any) error {
	defer os.Remove(path + beginSuffix) // what cannot be removed goes with the directory
	return writeKept(path, path+beginSuffix, v)
}

// WriteLastJSON replaces the file at path by v, also on a full disk, once, if KeepRoom kept room for it. A file system that never
// writes to the same place again may have none even so.
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

// writeInRoom makes the room the file. What is left of it is blanks, which JSON may end with.
func writeInRoom(path, room string, data []byte) error {
	// Under another name it is nobody else's who writes the same file now.
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
