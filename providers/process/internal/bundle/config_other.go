// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package bundle

import (
	"errors"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// Config is not possible here.
func Config(*shim.Spec, string, []string) ([]byte, error) {
	return nil, errors.New("container runtimes need Linux")
}

// Pause is not possible here.
func Pause(string) ([]byte, error) { return nil, errors.New("container runtimes need Linux") }

// PauseFile is the path of the first program of a sandbox.
const PauseFile = "/pause"

// PauseImage is not possible here.
func PauseImage(string) ([]byte, error) { return Pause("") }
