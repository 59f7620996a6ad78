// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// connection is a TCP connection between the network stack and a pod.
type connection struct {
	slot *slot
	ep   tcpip.Endpoint
	wq   *waiter.Queue
}

// stream is the other side of a connection: a socket of the machine.
type stream interface {
	net.Conn
	CloseWrite() error
	SyscallConn() (syscall.RawConn, error)
}

// errRefused means that the pod refused a connection or did not answer.
var errRefused = errors.New("refused")

// connectTo opens a connection from the stack to the pod. The connection is half-open until the pod answers.
func (p *pod) connectTo(ctx context.Context, from, to tcpip.FullAddress) (*connection, error) {
	fail := func(err error) (*connection, error) {
		return nil, fmt.Errorf("connect to %s:%d: %w", to.Addr, to.Port, err)
	}
	s, err := p.takeSlot(&p.connections, minShare, maxShare)
	if err != nil {
		return fail(err)
	}
	c := &connection{slot: s, wq: &waiter.Queue{}}
	var terr tcpip.Error
	if c.ep, terr = p.network.stack.NewEndpoint(tcp.ProtocolNumber, ipv4.ProtocolNumber, c.wq); terr != nil {
		s.releaseSlot()
		return fail(errors.New(terr.String()))
	}
	entry, ready := waiter.NewChannelEntry(waiter.WritableEvents | waiter.EventErr | waiter.EventHUp)
	c.wq.EventRegister(&entry)
	defer c.wq.EventUnregister(&entry)
	if terr = c.ep.Bind(from); terr == nil {
		terr = c.ep.Connect(to)
	}
	if _, started := terr.(*tcpip.ErrConnectStarted); started {
		select {
		case <-ready:
			terr = c.ep.LastError()
		case <-ctx.Done():
			c.abortConnection()
			return fail(fmt.Errorf("%w: no answer: %w", errRefused, ctx.Err()))
		case <-p.ctx.Done():
			c.abortConnection()
			return fail(errEnded)
		}
	}
	switch terr.(type) {
	case nil:
		c.limitBuffers()
		return c, nil
	case *tcpip.ErrConnectionRefused, *tcpip.ErrTimeout, *tcpip.ErrConnectionReset:
		c.abortConnection()
		return fail(refusal{terr.String()})
	}
	c.abortConnection()
	return fail(errors.New(terr.String()))
}

// refusal is an errRefused with the error text of the stack.
type refusal struct{ text string }

func (r refusal) Error() string        { return r.text }
func (r refusal) Is(target error) bool { return target == errRefused }

// limitBuffers limits the buffers of the connection to its share.
func (c *connection) limitBuffers() {
	size := int64(min(c.slot.share/2, bufferMost))
	c.ep.SocketOptions().SetReceiveBufferSize(size, true)
	c.ep.SocketOptions().SetSendBufferSize(size, true)
}

func (c *connection) abortConnection() {
	c.ep.Abort()
	c.awaitRelease()
}

// joinStreams copies data between both sides until both have ended, and closes them. It propagates the end of one
// direction and failures.
func (c *connection) joinStreams(other stream) {
	abort := func() {
		c.ep.Abort()
		if t, ok := other.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // the peer gets a reset, too
		}
		_ = other.Close()
	}
	stop := context.AfterFunc(c.slot.pod.ctx, abort)
	var copies sync.WaitGroup
	copies.Go(func() {
		if !c.copyOut(other) {
			abort()
		}
	})
	if !c.copyIn(other) {
		abort()
	}
	copies.Wait()
	stop()
	_ = other.Close()
	c.awaitRelease()
}

// copyOut copies from the pod, and reports whether the copy ended normally. Data goes from the stack to the
// kernel without an intermediate buffer.
func (c *connection) copyOut(to stream) bool {
	raw, err := to.SyscallConn()
	if err != nil {
		return false
	}
	entry, ready := waiter.NewChannelEntry(waiter.ReadableEvents | waiter.EventHUp | waiter.EventErr)
	c.wq.EventRegister(&entry)
	defer c.wq.EventUnregister(&entry)
	var w socketWriter
	var terr tcpip.Error
	write := func(fd uintptr) bool {
		w = socketWriter{fd: int(fd)}
		_, terr = c.ep.Read(&w, tcpip.ReadOptions{})
		return !w.full // otherwise RawConn.Write calls the function again when the socket is writable
	}
	for {
		if err := raw.Write(write); err != nil || w.err != nil {
			return false
		}
		switch terr.(type) {
		case nil:
		case *tcpip.ErrWouldBlock:
			<-ready
		case *tcpip.ErrClosedForReceive:
			return to.CloseWrite() == nil
		default:
			return false
		}
	}
}

// socketWriter writes as much as a socket accepts without blocking.
type socketWriter struct {
	fd   int
	full bool
	err  error
}

func (w *socketWriter) Write(b []byte) (n int, err error) {
	for err = unix.EINTR; err == unix.EINTR; {
		n, err = unix.SendmsgN(w.fd, b, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	}
	switch {
	case err == unix.EAGAIN:
		w.full = true
		return 0, io.ErrShortWrite
	case err != nil:
		w.err = err
		return 0, err
	case n < len(b):
		w.full = true
		return n, io.ErrShortWrite
	}
	return n, nil
}

// copyIn copies to the pod, and reports whether the copy ended normally. Data goes from the kernel to the stack
// without an intermediate buffer.
func (c *connection) copyIn(from stream) bool {
	raw, err := from.SyscallConn()
	if err != nil {
		return false
	}
	entry, ready := waiter.NewChannelEntry(waiter.WritableEvents | waiter.EventHUp | waiter.EventErr)
	c.wq.EventRegister(&entry)
	defer c.wq.EventUnregister(&entry)
	var r socketReader
	var terr tcpip.Error
	read := func(fd uintptr) bool {
		if r.measureSocket(int(fd)); r.empty {
			return false // RawConn.Read calls the function again when the socket is readable
		}
		if r.err == nil && !r.ended {
			_, terr = c.ep.Write(&r, tcpip.WriteOptions{})
		}
		return true
	}
	for {
		if err := raw.Read(read); err != nil || r.err != nil {
			return false
		}
		if r.ended {
			return c.ep.Shutdown(tcpip.ShutdownWrite) == nil
		}
		switch terr.(type) {
		case nil:
		case *tcpip.ErrWouldBlock:
			<-ready
		default:
			return false
		}
	}
}

// socketReader reads the available data of a socket. It is the only reader of the socket.
type socketReader struct {
	fd, size     int // size is the number of available bytes in the socket
	empty, ended bool
	err          error
}

// measureSocket sets size to the amount of data in the socket.
func (r *socketReader) measureSocket(fd int) {
	*r = socketReader{fd: fd}
	if r.size, r.err = unix.IoctlGetInt(fd, unix.TIOCINQ); r.err != nil || r.size > 0 {
		return
	}
	// Peek at the next byte to distinguish no data, EOF and an error.
	var next [1]byte
	var n int
	var err error
	for err = unix.EINTR; err == unix.EINTR; {
		n, _, err = unix.Recvfrom(fd, next[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	}
	switch {
	case err == unix.EAGAIN:
		r.empty = true
	case err != nil:
		r.err = err
	case n == 0:
		r.ended = true
	default:
		r.size = n // data has arrived since the first check
	}
}

// Len returns the number of bytes that can be read without blocking.
func (r *socketReader) Len() int { return r.size }

// Read reads at most Len bytes.
func (r *socketReader) Read(b []byte) (n int, err error) {
	if b = b[:min(len(b), r.size)]; len(b) == 0 {
		return 0, nil
	}
	for err = unix.EINTR; err == unix.EINTR; {
		n, err = unix.Read(r.fd, b)
	}
	if err == nil && n == 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		r.err = err
		return 0, err
	}
	r.size -= n
	return n, nil
}

// awaitRelease closes the connection, and keeps its slot until the stack has released the connection. So a pod
// that does not close its side uses up its own slots.
func (c *connection) awaitRelease() {
	c.ep.Close()
	late := time.NewTimer(finWait)
	defer late.Stop()
	for pause := time.Millisecond; !c.isReleased(); pause = min(2*pause, time.Second/4) {
		select {
		case <-time.After(pause):
		case <-late.C:
			c.ep.Abort()
		case <-c.slot.pod.ctx.Done():
			c.ep.Abort()
			c.slot.releaseSlot()
			return
		}
	}
	c.slot.releaseSlot()
}

func (c *connection) isReleased() bool {
	switch tcp.EndpointState(c.ep.State()) {
	case tcp.StateInitial, tcp.StateClose, tcp.StateError:
		return true
	}
	return false
}

// datagramBuffers is a pool of buffers for one datagram each.
var datagramBuffers = bufferPool(64 << 10)

func bufferPool(size int) sync.Pool {
	return sync.Pool{New: func() any { b := make([]byte, size); return &b }}
}
