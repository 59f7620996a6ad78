// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package netns

import (
	"errors"
	"os"
)

var errNone = errors.New("network namespaces need Linux")

// New is not possible here.
func New(string) error { return errNone }

// Alive reports whether there is a namespace at path.
func Alive(string) bool { return false }

// Remove has nothing to remove.
func Remove(string) error { return nil }

// Do is not possible here.
func Do(string, func() error) error { return errNone }

// OpenTunnel is not possible here.
func OpenTunnel(string, string, int) (*os.File, error) { return nil, errNone }

// HasTunnels returns the error for missing support of tunnels.
func HasTunnels() error { return errNone }

// Routes has none here.
func Routes() ([]Route, error) { return nil, nil }
