// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/durable"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/images"
)

const (
	configFile = "config.json"
	recordFile = "record.json"
)

// record is the record of a sandbox or a container on disk. The configuration is in another file.
type record interface {
	// checkRecord refuses an invalid record: JSON decodes even an empty object without an error.
	checkRecord() error
}

// saveRecord creates dir with a record and a configuration. It writes the record last, because a directory
// without a record is incomplete.
func saveRecord(dir string, r record, config proto.Message) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	data, err := protojson.Marshal(config)
	if err == nil {
		err = durable.WriteFile(filepath.Join(dir, configFile), data)
	}
	if err == nil {
		err = durable.WriteJSON(filepath.Join(dir, recordFile), r)
	}
	if err == nil {
		err = durable.SyncDir(filepath.Dir(dir))
	}
	return err
}

func loadRecord(dir string, r record, config proto.Message) error {
	if err := durable.ReadJSON(filepath.Join(dir, recordFile), r); err != nil {
		return err
	}
	if err := r.checkRecord(); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, recordFile), err)
	}
	path := filepath.Join(dir, configFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, config); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if proto.Size(config) == 0 {
		return fmt.Errorf("read %s: there is nothing in it", path)
	}
	return nil
}

// removeRecorded removes dir, the record first: after a crash, the next daemon removes a directory without a
// record.
func removeRecorded(dir string) error {
	err := os.Remove(filepath.Join(dir, recordFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	return images.RemoveTree(dir)
}
