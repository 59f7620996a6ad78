// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// TestWhatAContainerWritesOverItsImageIsMeasured checks that the files that a container writes over its image
// are measured. Limits of ephemeral storage depend on the measurement.
func TestWhatAContainerWritesOverItsImageIsMeasured(t *testing.T) {
	w := open(t, nil)
	id := w.run("main", nil, "sleep", "600")
	layer := filepath.Join(w.config.StateDir, "containers", id, "upper")
	if _, err := os.Stat(layer); err != nil {
		layer = filepath.Join(w.config.StateDir, "containers", id, "rootfs")
	}
	if err := os.WriteFile(filepath.Join(layer, "big"), make([]byte, 5<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	var bytes, files uint64
	w.until("the size of what was written", func() bool {
		s, err := w.ContainerStats(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		bytes, files = s.GetWritableLayer().GetUsedBytes().GetValue(), s.GetWritableLayer().GetInodesUsed().GetValue()
		return bytes > 0
	})
	if bytes < 5<<20 || bytes > 6<<20 || files == 0 {
		t.Errorf("got %d bytes in %d files, want the 5 MiB that were written", bytes, files)
	}
}
