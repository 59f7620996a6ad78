// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package bundle

import (
	"errors"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// Config is not supported on this operating system.
func Config(*shim.Spec, string, []string) ([]byte, error) {
	return nil, errors.New("container runtimes need Linux")
}

// Pause is not supported on this operating system.
func Pause(string) ([]byte, error) { return nil, errors.New("container runtimes need Linux") }

// PauseFile is the path of the pause program in a sandbox.
const PauseFile = "/pause"

// PauseImage is not supported on this operating system.
func PauseImage(string) ([]byte, error) { return Pause("") }
