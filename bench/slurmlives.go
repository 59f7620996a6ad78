// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func (c *slurm) countRequests(from, to time.Time) (requests, error) {
	calls, err := os.ReadFile(filepath.Join(c.dir, "calls"))
	if err != nil {
		return nil, fmt.Errorf("read the calls of Slurm's commands: %w", err)
	}
	var l ledger
	for line := range bytes.Lines(calls) {
		at, name, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		t, err := parseSeconds(at)
		if err != nil {
			return nil, fmt.Errorf("read the calls of Slurm's commands: %w", err)
		}
		l.recordRequest(t, name)
	}
	return l.countRequests(from, to)
}

// podLives returns the records of the pods' programs, and the times at which Slurm started their jobs.
func (c *slurm) podLives(ctx context.Context, namespace string) (map[string]lived, error) {
	all, err := readTold(filepath.Join(c.dir, "told"))
	if err != nil {
		return nil, err
	}
	out, err := c.run(ctx, "squeue", "--noheader", "--states=all", "--format=%S %k")
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(out) {
		at, comment, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		parts := strings.Split(comment, "/") // the kind, the cluster, the node, the namespace, the name and the UID
		if len(parts) != 6 || parts[3] != namespace {
			continue
		}
		t, err := parseSeconds(at)
		if err != nil {
			continue // it has not begun
		}
		k := all[parts[4]]
		k.started = t
		all[parts[4]] = k
	}
	return all, nil
}

// readTold reads the records of telling.
func readTold(dir string) (map[string]lived, error) {
	all := map[string]lived{}
	return all, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		at, err := parseSeconds(string(text))
		if err != nil {
			return nil //nolint:nilerr // it is being written
		}
		name, what, _ := strings.Cut(filepath.Base(path), ".")
		k := all[name]
		if what == "began" {
			k.began = at
		} else {
			k.ended = at
		}
		all[name] = k
		return nil
	})
}
