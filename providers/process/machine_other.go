// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import (
	"io/fs"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// inMemory is not supported on this operating system.
func inMemory(string) bool { return false }

// memoryVolume is not supported on this operating system.
func memoryVolume(string) (shim.MemoryVolume, bool, error) { return shim.MemoryVolume{}, false, nil }

// lowestOOMScore is not supported on this operating system.
func lowestOOMScore() int { return 0 }

// heldCapabilities returns no capabilities on this operating system.
func heldCapabilities() (uint64, error) { return 0, nil }

// isOurs is not supported on this operating system.
func isOurs(fs.FileInfo) bool { return false }
