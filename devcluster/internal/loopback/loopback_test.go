// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"net"
	"slices"
	"testing"
)

func port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func TestListen(t *testing.T) {
	first, err := Listen(Address, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if ip := first.Addr().(*net.TCPAddr).IP; !ip.IsLoopback() {
		t.Errorf("got address %s, want a loopback one", ip)
	}
	if l, err := Listen(Address, port(first), 0); err == nil {
		l.Close()
		t.Errorf("Listen(%d): got a listener, want an error because the port is taken", port(first))
	}
	second, err := Listen(Address, 0, port(first))
	if err != nil {
		t.Fatalf("the preferred port is taken: got %v, want another port", err)
	}
	free := port(second)
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	third, err := Listen(Address, 0, free)
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	if port(third) != free {
		t.Errorf("the preferred port %d is free: got %d", free, port(third))
	}
}

func TestFreePortsDiffer(t *testing.T) {
	ports, err := FreePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ports)
	if len(slices.Compact(ports)) != 20 {
		t.Errorf("got %v, want twenty different ports", ports)
	}
}
