// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import "io/fs"

// inMemory is not known here.
func inMemory(string) bool { return false }

// heldCapabilities are none.
func heldCapabilities() (uint64, error) { return 0, nil }

// isOurs is not known here.
func isOurs(fs.FileInfo) bool { return false }
