// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
)

// TestSecurityK3APodThatReadsNothingHasBoundedMemory fills the buffers of many connections in both directions:
// the echo server writes data that the pod never reads.
func TestSecurityK3APodThatReadsNothingHasBoundedMemory(t *testing.T) {
	needInternet(t)
	p := startProcess(t, user(os.Geteuid()), testConfig())
	greedy, other := p.guest("ns/a", "10.88.0.5"), p.guest("ns/b", "10.88.0.6")
	const connections, each = 500, 1 << 20
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var writers sync.WaitGroup
	for range connections {
		c, err := gonet.DialContextTCP(ctx, greedy.stack, full("10.98.7.7", 443), ipv4.ProtocolNumber)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // until no more data is accepted
		writers.Go(func() { _, _ = c.Write(make([]byte, each)) })
	}
	writers.Wait()
	const most = 160 << 10
	rss := p.status(t, "VmHWM")
	if rss > most {
		t.Errorf("the process has had %d KiB, want %d at most", rss, most)
	}
	if err := other.open(); err != nil {
		t.Errorf("another pod: %v", err)
	}
}
