// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	// dialTimeout is the longest time for a connection, in and out.
	dialTimeout = 10 * time.Second
	// nextTimeout is the time to connect to one of several addresses.
	nextTimeout = 2 * time.Second
)

// forwardTCP is called for the first packet of each connection of a pod, in a goroutine of its own.
func (n *Network) forwardTCP(r *tcp.ForwarderRequest) {
	id := r.ID()
	p := n.find(id.RemoteAddress.As4())
	if p == nil || !p.enter() {
		r.Complete(false)
		return
	}
	defer p.tasks.Done()
	to := netip.AddrPortFrom(netip.AddrFrom4(id.LocalAddress.As4()), id.LocalPort)
	c, out, err := p.accept(r, endpoint{ProtocolTCP, to})
	if err != nil {
		r.Complete(true) // the pod sees a refused connection
		return
	}
	r.Complete(false)
	c.join(out)
}

// accept connects to the target first and to the pod second: if the target refuses a connection, the pod sees it
// refused.
func (p *pod) accept(r *tcp.ForwarderRequest, to endpoint) (*connection, stream, error) {
	if !p.halfOpen.take() {
		return nil, nil, errLimit
	}
	defer p.halfOpen.put()
	s, err := p.take(&p.connections, minShare, maxShare)
	if err != nil {
		return nil, nil, err
	}
	targets, err := p.network.policy.Load().targets(to, p.network.owns)
	if err != nil {
		s.release()
		return nil, nil, err
	}
	out, err := dialTCP(p.ctx, targets)
	if err != nil {
		s.release()
		return nil, nil, err
	}
	c := &connection{slot: s, wq: &waiter.Queue{}}
	var terr tcpip.Error
	if c.ep, terr = r.CreateEndpoint(c.wq); terr != nil {
		_ = out.Close()
		s.release()
		return nil, nil, errors.New(terr.String())
	}
	c.limit()
	return c, out, nil
}

// dialTCP connects with the first target that answers.
func dialTCP(ctx context.Context, targets []netip.AddrPort) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	if len(targets) > 1 {
		d.Timeout = nextTimeout
	}
	errs := []error{errors.New("there is no address to connect to")}
	for _, t := range targets {
		c, err := d.DialContext(ctx, "tcp4", t.String())
		if err == nil {
			return c.(*net.TCPConn), nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("connect: %w", errs[len(errs)-1])
}
