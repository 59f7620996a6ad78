// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/images"
)

// TestSecurityI5WhatCannotBeRemovedIsTriedAgain checks that files that cannot be removed do not keep the node
// from starting, and are removed later.
func TestSecurityI5WhatCannotBeRemovedIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"containers/c", "sandboxes/s", "images"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		store, err := images.Open(filepath.Join(dir, "images"), images.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := &Runtime{config: Config{StateDir: dir}, images: store, sandboxes: map[string]*sandbox{}, containers: map[string]*container{}}
		calls, busy := 0, errors.New("busy")
		remove := func(_ context.Context, _, dir string) error {
			if calls++; calls < 3 {
				return busy
			}
			return os.Remove(dir)
		}
		none := errors.New("there is no record")
		if err := r.loadEach(t.Context(), "containers", func(context.Context, string, string) error { return none }, remove); err != nil {
			t.Fatal(err)
		}
		r.sweepLeftovers(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), 3*sweepEvery)
		defer cancel()
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "containers/c")); calls != 3 || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after %d attempts: %v", calls, err)
		}
	})
}
