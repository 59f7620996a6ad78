// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// dnsHeader is the size of the header of a DNS message.
	dnsHeader = 12
	// silence is the time for which a nameserver that did not answer is tried last.
	silence = 10 * time.Second
)

// startQuery sends a pod's query to the nameservers, and delivers the answer. Each query has its own socket, so
// its port cannot be guessed.
func (f *flow) startQuery(servers []netip.AddrPort, query []byte) {
	p := f.slot.pod
	if len(query) < dnsHeader || !p.queries.takeOne() {
		return
	}
	if !p.files.takeUnits(1) {
		p.queries.returnOne()
		return
	}
	query = slices.Clone(query)
	f.questions.Add(1)
	release := func() {
		f.questions.Add(-1)
		p.files.returnUnits(1)
		p.queries.returnOne()
	}
	if !p.spawnTask(func() {
		defer release()
		f.queryServers(servers, query)
	}) {
		release()
	}
}

func (f *flow) queryServers(servers []netip.AddrPort, query []byte) {
	b := datagramBuffers.Get().(*[]byte)
	defer datagramBuffers.Put(b)
	known := &f.slot.pod.network.silent
	for _, server := range known.sortServers(servers) {
		if f.slot.pod.ctx.Err() != nil {
			return
		}
		n, err := exchangeQuery(server, query, *b)
		known.recordAnswer(server, err != nil)
		if err == nil {
			f.deliverDatagram((*b)[:n])
			return
		}
	}
}

// exchangeQuery sends a query to one nameserver, and returns the size of the answer.
func exchangeQuery(server netip.AddrPort, query, answer []byte) (int, error) {
	c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(server))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(nextTimeout)); err != nil {
		return 0, err
	}
	if _, err := c.Write(query); err != nil {
		return 0, err
	}
	for {
		n, err := c.Read(answer)
		if err != nil {
			return 0, fmt.Errorf("ask nameserver %s: %w", server, err)
		}
		// An answer has the ID of the query, and the response bit.
		if n >= dnsHeader && answer[0] == query[0] && answer[1] == query[1] && answer[2]&0x80 != 0 {
			return n, nil
		}
	}
}

// silentServers records the nameservers that did not answer recently.
type silentServers struct {
	mu    sync.Mutex
	until map[netip.AddrPort]time.Time // guarded by mu
}

// sortServers returns the servers, with the silent servers last.
func (s *silentServers) sortServers(servers []netip.AddrPort) []netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	rank := func(a netip.AddrPort) int {
		if s.until[a].After(now) {
			return 1
		}
		return 0
	}
	return slices.SortedStableFunc(slices.Values(servers), func(a, b netip.AddrPort) int { return rank(a) - rank(b) })
}

func (s *silentServers) recordAnswer(server netip.AddrPort, silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !silent {
		delete(s.until, server)
		return
	}
	if s.until == nil {
		s.until = map[netip.AddrPort]time.Time{}
	}
	s.until[server] = time.Now().Add(silence)
}
