// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// TestFault47ConnectionsLeaveFilesForTheLease: two clients take all the connections to the node's server that
// they can get. The daemon still has enough files for its own connections, which are reset again and again, and
// renews its lease.
func TestFault47ConnectionsLeaveFilesForTheLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const files, perClient = 256, 250
	address, openFiles := w.startChild(files)
	w.awaitReadyNode()
	w.awaitRenewal(time.Time{})

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	greedy := &greedy{address: address, held: map[string]*atomic.Int64{}, most: map[string]*atomic.Int64{}}
	clients := []string{"127.0.0.2", "127.0.0.3"}
	greedy.start(ctx, clients, perClient)

	began := time.Now()
	lasts := inForm(22*time.Second, 2*time.Minute)
	mostFiles := 0
	for i := 1; time.Since(began) < lasts; i++ {
		w.sleep(100 * time.Millisecond)
		mostFiles = max(mostFiles, openFiles())
		if i%20 == 0 {
			w.proxy.Reset()
		}
	}
	w.create(w.pod("meanwhile"))
	w.awaitPod("meanwhile", "runs", running)
	gap, flaps := w.leaseGap(began), w.readyFlaps(began)
	cancel()
	greedy.wait()
	first, second := greedy.most[clients[0]].Load(), greedy.most[clients[1]].Load()
	if most := files * 3 / 4; mostFiles > most {
		t.Errorf("the daemon had %d of %d files open, want at most %d: half for connections and some of its own", mostFiles, files, most)
	}
	if first == 0 || second == 0 {
		t.Errorf("the clients held %d and %d connections, want some each", first, second)
	}
	if gap > maxLeaseGap {
		t.Errorf("the lease was not renewed for %v, want at most %v", gap, maxLeaseGap)
	}
	if flaps > 0 {
		t.Errorf("the node was not ready %d times", flaps)
	}
	faultrow.Record(t, 47, fmt.Sprintf("%d files in a process of its own; two clients try to hold %d TLS connections each for %v; the daemon's connections reset every 2 s",
		files, perClient, lasts), "longest lease gap %v, Ready flaps %d, files open at most %d, connections of the clients at most %d and %d, a new pod runs meanwhile",
		gap.Round(time.Millisecond), flaps, mostFiles, first, second)
}

// greedy has clients that take all the connections that they can get, and reconnect when they lose one.
type greedy struct {
	address    string
	held, most map[string]*atomic.Int64 // by client
	wg         sync.WaitGroup
}

func (g *greedy) start(ctx context.Context, clients []string, each int) {
	for _, client := range clients {
		g.held[client], g.most[client] = &atomic.Int64{}, &atomic.Int64{}
	}
	for _, client := range clients {
		for range each {
			g.wg.Go(func() {
				for ctx.Err() == nil {
					g.hold(ctx, client)
					select {
					case <-ctx.Done():
					case <-time.After(time.Second):
					}
				}
			})
		}
	}
}

func (g *greedy) wait() { g.wg.Wait() }

// hold keeps one connection until the server closes it or ctx ends.
func (g *greedy) hold(ctx context.Context, client string) {
	dialer := net.Dialer{Timeout: 10 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(client)}}
	raw, err := dialer.DialContext(ctx, "tcp", g.address)
	if err != nil {
		return
	}
	defer raw.Close()
	defer context.AfterFunc(ctx, func() { _ = raw.Close() })()
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it learns nothing and sends nothing
	if conn.HandshakeContext(ctx) != nil {
		return
	}
	now := g.held[client].Add(1)
	defer g.held[client].Add(-1)
	for most := g.most[client].Load(); now > most && !g.most[client].CompareAndSwap(most, now); most = g.most[client].Load() {
	}
	_, _ = conn.Read(make([]byte, 1))
}
