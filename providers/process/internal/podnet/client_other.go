// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package podnet

import (
	"context"
	"errors"
	"net"
	"os"
)

// Connection is a connection to the network process. The network process exists on Linux only.
type Connection struct{}

// Close ends the connection.
func (*Connection) Close() error { return nil }

// Wait returns when the connection has ended.
func (*Connection) Wait() {}

// CheckVersion asks the network process for its version.
func CheckVersion(context.Context, string) error { return errors.ErrUnsupported }

// Configure replaces the configuration of the network process.
func Configure(context.Context, string, Config) (*Connection, error) {
	return nil, errors.ErrUnsupported
}

// Attach connects a pod to the network.
func Attach(context.Context, string, Pod, *os.File) (*Connection, error) {
	return nil, errors.ErrUnsupported
}

// Keep connects a pod to the network.
func Keep(context.Context, string, Pod, *os.File) error { return errors.ErrUnsupported }

// Detach disconnects a pod from the network.
func Detach(context.Context, string, string) error { return errors.ErrUnsupported }

// Dial connects to a port of a pod.
func Dial(context.Context, string, string, uint16) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}
