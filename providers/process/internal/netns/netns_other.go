// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package netns

import (
	"errors"
	"os"
)

var errNone = errors.New("network namespaces need Linux")

// New is not supported on this operating system.
func New(string) error { return errNone }

// Alive returns false on this operating system.
func Alive(string) bool { return false }

// Remove does nothing on this operating system.
func Remove(string) error { return nil }

// Do is not supported on this operating system.
func Do(string, func() error) error { return errNone }

// OpenTunnel is not supported on this operating system.
func OpenTunnel(string, string, int) (*os.File, error) { return nil, errNone }

// HasTunnels returns an error: tunnels are not supported on this operating system.
func HasTunnels() error { return errNone }

// Routes returns no routes on this operating system.
func Routes() ([]Route, error) { return nil, nil }
