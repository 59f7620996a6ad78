// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"errors"
	"fmt"
	"syscall"
)

// held is a bound port without a listener: the system refuses connections to it, and does not give it to another process.
type held struct{ fd, port int }

func holdPort() (_ *held, err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, fmt.Errorf("make socket: %w", err)
	}
	defer func() {
		if err != nil {
			_ = syscall.Close(fd)
		}
	}()
	syscall.CloseOnExec(fd)
	// With this option on both sockets, both can bind the port, because only one of them listens.
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return nil, fmt.Errorf("share the port: %w", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, fmt.Errorf("bind: %w", err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		return nil, fmt.Errorf("read the port: %w", err)
	}
	inet, ok := bound.(*syscall.SockaddrInet4)
	if !ok {
		return nil, errors.New("the bound address is not IPv4")
	}
	return &held{fd: fd, port: inet.Port}, nil
}

func (h *held) releasePort() { _ = syscall.Close(h.fd) }
