// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/images"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

const (
	configFile = "config.json"
	recordFile = "record.json"
)

// saveRecord makes dir with a record and a configuration in it; the record last, since it makes them count.
func saveRecord(dir string, record any, config proto.Message) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	data, err := protojson.Marshal(config)
	if err == nil {
		err = shim.WriteFile(filepath.Join(dir, configFile), data)
	}
	if err == nil {
		err = shim.WriteJSON(filepath.Join(dir, recordFile), record)
	}
	return err
}

func loadRecord(dir string, record any, config proto.Message) error {
	if err := shim.ReadJSON(filepath.Join(dir, recordFile), record); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(dir, configFile))
	if err != nil {
		return err
	}
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, config)
}

// eachDir calls do for each directory in dir. Those without record were being made or removed when a
// process ended, and are removed.
func eachDir(dir string, do func(id, dir string) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if _, err := os.Stat(filepath.Join(path, recordFile)); errors.Is(err, fs.ErrNotExist) {
			if err := images.RemoveTree(path); err != nil {
				return err
			}
			continue
		}
		if err := do(e.Name(), path); err != nil {
			return fmt.Errorf("read what an earlier process left in %s: %w", path, err)
		}
	}
	return nil
}

// removeRecorded removes the record first: what is left without one is removed by the next process.
func removeRecorded(dir string) error {
	if err := os.Remove(filepath.Join(dir, recordFile)); err != nil && !os.IsNotExist(err) {
		return err
	}
	return images.RemoveTree(dir)
}
