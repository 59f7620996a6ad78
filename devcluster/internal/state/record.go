// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Record is written by a cluster when it is ready. It stays after the cluster stops: [Dir.Holder] decides
// whether the cluster runs.
type Record struct {
	Server     string    `json:"server"`     // the API server's URL
	PID        int       `json:"pid"`        // the process that wrote the record
	Port       int       `json:"port"`       // the API server's port; the next start uses the port again if it is free
	Kubernetes string    `json:"kubernetes"` // version of the API server
	Etcd       string    `json:"etcd"`       // version of etcd
	Started    time.Time `json:"started"`    // when the last start began
}

// WriteRecord replaces the cluster's record in one step.
func (d Dir) WriteRecord(r Record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode record of cluster %s: %w", d.Name, err)
	}
	draft := d.recordFile() + ".new"
	if err := os.WriteFile(draft, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write record of cluster %s: %w", d.Name, err)
	}
	if err := os.Rename(draft, d.recordFile()); err != nil {
		return fmt.Errorf("replace record of cluster %s: %w", d.Name, err)
	}
	return nil
}

// ReadRecord returns the cluster's record; ok is false if the cluster never completed a start.
func (d Dir) ReadRecord() (r Record, ok bool, err error) {
	data, err := os.ReadFile(d.recordFile())
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, fmt.Errorf("read record of cluster %s: %w", d.Name, err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, false, fmt.Errorf("decode record of cluster %s: %w", d.Name, err)
	}
	return r, true, nil
}
