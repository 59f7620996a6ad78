// SPDX-License-Identifier: Apache-2.0

// Package loopback opens listeners that only this machine can reach, unless it is told otherwise, and chooses
// free ports.
//
// A listener from here holds its port. A chosen port is not held: another process may take it before it is used,
// so the caller tries again with other ports.
package loopback

import (
	"fmt"
	"net"
	"strconv"
)

// Address is the default listen address.
const Address = "127.0.0.1"

// Listen opens a TCP listener on an IP address of this machine, usually [Address]. With port 0, it uses the preferred port if that is not 0
// and is free, else any free port. With another port, it uses that port or fails.
func Listen(address string, port, preferred int) (net.Listener, error) {
	if port == 0 && preferred != 0 {
		if l, err := listen(address, preferred); err == nil {
			return l, nil
		}
	}
	return listen(address, port)
}

// FreePorts returns n different ports of [Address] that are free now.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		l, err := listen(Address, 0)
		if err != nil {
			return nil, fmt.Errorf("choose a port: %w", err)
		}
		defer func() { _ = l.Close() }() // closed after the last port is chosen, so that no port is chosen twice
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

func listen(address string, port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port))) //nolint:noctx // a bind on this machine does not block
}
