// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"fmt"
	"net"
	"testing"
)

// TestPortsAreNobodys: a check gets a port only once, and no port on which a program listens.
func TestPortsAreNobodys(t *testing.T) {
	c := &C{ctx: t.Context()}
	taken := (c.unusedPort()-20_000+1)%10_000 + 20_000 // the next one
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", taken))
	if err != nil {
		t.Skipf("another program has the port: %v", err)
	}
	defer l.Close()
	given := map[int32]bool{taken: true}
	for range 50 {
		port := c.unusedPort()
		if given[port] {
			t.Errorf("port %d is given, which somebody has", port)
		}
		given[port] = true
	}
}
