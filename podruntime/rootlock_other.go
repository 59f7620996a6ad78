// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package podruntime

import (
	"fmt"
	"os"
	"path/filepath"
)

// lockRoot opens a file, and does not lock the directory on this operating system.
func lockRoot(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("pod runtime: lock its directory: %w", err)
	}
	return f, nil
}
