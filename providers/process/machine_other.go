// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import (
	"io/fs"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// inMemory is not known here.
func inMemory(string) bool { return false }

// memoryVolume is not known here.
func memoryVolume(string) (shim.MemoryVolume, bool, error) { return shim.MemoryVolume{}, false, nil }

// lowestOOMScore is not known here.
func lowestOOMScore() int { return 0 }

// heldCapabilities are none.
func heldCapabilities() (uint64, error) { return 0, nil }

// isOurs is not known here.
func isOurs(fs.FileInfo) bool { return false }
