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
	// dialTimeout is the timeout for opening a connection, in both directions.
	dialTimeout = 10 * time.Second
	// nextTimeout is the timeout for one of several addresses.
	nextTimeout = 2 * time.Second
)

// forwardTCP handles a new connection from a pod. The stack calls it in its own goroutine.
func (n *Network) forwardTCP(r *tcp.ForwarderRequest) {
	id := r.ID()
	p := n.findPod(id.RemoteAddress.As4())
	if p == nil || !p.enterTask() {
		r.Complete(false)
		return
	}
	defer p.tasks.Done()
	to := netip.AddrPortFrom(netip.AddrFrom4(id.LocalAddress.As4()), id.LocalPort)
	c, out, err := p.acceptConnection(r, endpoint{ProtocolTCP, to})
	if err != nil {
		r.Complete(true) // the pod gets a reset
		return
	}
	r.Complete(false)
	c.joinStreams(out)
}

// acceptConnection connects to the target before it accepts the connection of the pod, so the pod gets a refusal
// if the target refuses.
func (p *pod) acceptConnection(r *tcp.ForwarderRequest, to endpoint) (*connection, stream, error) {
	if !p.halfOpen.takeOne() {
		return nil, nil, errLimit
	}
	defer p.halfOpen.returnOne()
	s, err := p.takeSlot(&p.connections, minShare, maxShare)
	if err != nil {
		return nil, nil, err
	}
	targets, err := p.network.policy.Load().connectionTargets(to, p.network.owns)
	if err != nil {
		s.releaseSlot()
		return nil, nil, err
	}
	out, err := dialTCP(p.ctx, targets)
	if err != nil {
		s.releaseSlot()
		return nil, nil, err
	}
	c := &connection{slot: s, wq: &waiter.Queue{}}
	var terr tcpip.Error
	if c.ep, terr = r.CreateEndpoint(c.wq); terr != nil {
		_ = out.Close()
		s.releaseSlot()
		return nil, nil, errors.New(terr.String())
	}
	c.limitBuffers()
	return c, out, nil
}

// dialTCP connects to the first target that answers.
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
