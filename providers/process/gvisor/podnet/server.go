// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// maxPacket is the maximum size of a request: a configuration with some thousand services.
const maxPacket = 1 << 20

// server answers requests on the socket of the process. Only root and the user that started the process may
// connect.
type server struct {
	network *Network
	users   []uint32
	tasks   sync.WaitGroup
	// idle is the time without pods and connections after which the process ends: its daemon has ended and was
	// not restarted.
	idle time.Duration
	// connections counts the open connections.
	connections atomic.Int64
}

// idleTime is longer than the restart of a daemon takes.
const idleTime = 2 * time.Minute

// awaitIdle returns when there has been neither a pod nor a connection for the time idle, or when ctx ends.
func (s *server) awaitIdle(ctx context.Context) {
	ticks := time.NewTicker(s.idle / 2)
	defer ticks.Stop()
	for seen := 0; seen < 2; {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		if seen++; s.connections.Load() > 0 || len(*s.network.pods.Load()) > 0 {
			seen = 0
		}
	}
}

// serveListener answers requests until ctx ends, the listener fails, or the process is idle. It returns when all
// connections have ended.
func (s *server) serveListener(ctx context.Context, l *net.UnixListener) error {
	defer s.tasks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	s.tasks.Go(func() {
		s.awaitIdle(ctx)
		cancel()
	})
	for {
		c, err := l.AcceptUnix()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept a connection of the daemon or a supervisor: %w", err)
		}
		s.connections.Add(1)
		s.tasks.Go(func() {
			defer s.connections.Add(-1)
			defer c.Close()
			stop := context.AfterFunc(ctx, func() { _ = c.Close() })
			defer stop()
			s.answerClient(ctx, c)
		})
	}
}

// answerClient answers the requests of one connection.
func (s *server) answerClient(ctx context.Context, c *net.UnixConn) {
	if err := s.checkUser(c); err != nil {
		replyError(c, err)
		return
	}
	for {
		packet, fds, err := readPacket(c)
		if err != nil {
			if !errors.Is(err, io.EOF) && ctx.Err() == nil {
				replyError(c, err)
			}
			return
		}
		r, err := decodeRequest(packet)
		if err == nil && (len(fds) == 1) != (r.Op == OpAttach) {
			err = fmt.Errorf("request %q came with %d descriptors", r.Op, len(fds))
		}
		if err != nil {
			closeAll(fds)
			replyError(c, err)
			return
		}
		switch r.Op {
		case OpVersion:
			sendAnswer(c, Answer{Version: Version})
		case OpConfigure:
			replyError(c, s.configureNetwork(*r.Config))
		case OpAttach:
			s.keepPod(c, *r.Pod, fds[0], r.Keep)
			return
		case OpDetach:
			if p := s.network.findPod(r.Address.As4()); p != nil { // a missing pod is no error
				s.network.detachPod(p)
			}
			sendAnswer(c, Answer{})
		case OpDial:
			s.dialPod(ctx, c, r)
			return
		}
	}
}

func (s *server) checkUser(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	if ctl := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); ctl != nil {
		return ctl
	}
	if err != nil {
		return fmt.Errorf("find out who asks: %w", err)
	}
	for _, u := range s.users {
		if peer.Uid == u {
			return nil
		}
	}
	return fmt.Errorf("user %d may not use the network process", peer.Uid)
}

func (s *server) configureNetwork(c Config) error {
	if err := s.network.setConfig(c); err != nil {
		return err
	}
	s.network.log.Printf("configured: pods %s, gateway %s, %d nameservers, %d services", c.Range, c.Gateway, len(c.Nameservers), len(c.Services))
	return nil
}

// keepPod keeps a pod until its connection ends, or until it is detached.
func (s *server) keepPod(c *net.UnixConn, spec Pod, fd int, keep bool) {
	p, err := s.network.attachPod(spec, fd)
	if err != nil {
		s.network.log.Printf("attach: %v", err)
		replyError(c, err)
		return
	}
	if keep && sendAnswer(c, Answer{}) {
		return
	}
	defer s.network.detachPod(p)
	if !keep && sendAnswer(c, Answer{}) {
		_, _ = c.Read(make([]byte, 1)) // the client sends no data, so Read returns at the end of the connection
	}
}

// dialPod sends the client a stream that is connected to a port of a pod.
func (s *server) dialPod(ctx context.Context, c *net.UnixConn, r *Request) {
	p := s.network.findPod(r.Address.As4())
	if p == nil || !p.enterTask() {
		replyError(c, fmt.Errorf("connect to %s:%d: no pod has the address", r.Address, r.Port))
		return
	}
	defer p.tasks.Done()
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = c.Read(make([]byte, 1))
		cancel()
	}()
	conn, err := s.network.dialPod(dialing, p, r.Port)
	if err == nil {
		var ours *net.UnixConn
		if ours, err = sendStream(c); err == nil {
			_ = c.Close()
			conn.joinStreams(ours)
		} else {
			conn.abortConnection()
		}
	}
	if err != nil {
		replyError(c, err)
	}
	_ = c.Close()
	<-gone
	cancel()
}

// sendStream sends one end of a stream, and returns the other one.
func sendStream(c *net.UnixConn) (*net.UnixConn, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("make a stream: %w", err)
	}
	file := os.NewFile(uintptr(pair[0]), "stream")
	ours, err := net.FileConn(file)
	_ = file.Close()
	if err == nil {
		_, _, err = c.WriteMsgUnix([]byte("{}"), unix.UnixRights(pair[1]), nil)
	}
	_ = unix.Close(pair[1])
	if err != nil {
		if ours != nil {
			_ = ours.Close()
		}
		return nil, fmt.Errorf("send the stream: %w", err)
	}
	return ours.(*net.UnixConn), nil
}

// readPacket waits for a packet, and returns it with its descriptors.
func readPacket(c *net.UnixConn) (packet []byte, fds []int, err error) {
	size, err := peekSize(c)
	if err != nil {
		return nil, nil, err
	}
	if size > maxPacket {
		return nil, nil, fmt.Errorf("the request has %d bytes, more than %d", size, maxPacket)
	}
	packet, oob := make([]byte, size), make([]byte, unix.CmsgSpace(4*4))
	n, on, flags, _, err := c.ReadMsgUnix(packet, oob)
	if err != nil {
		return nil, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:on])
	for _, m := range messages {
		if got, rights := unix.ParseUnixRights(&m); rights == nil {
			fds = append(fds, got...)
		}
	}
	if err == nil && flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		err = errors.New("the request has too many descriptors")
	}
	if err != nil {
		closeAll(fds)
		return nil, nil, fmt.Errorf("read the request: %w", err)
	}
	return packet[:n], fds, nil
}

// peekSize waits for a packet, and returns its size, so a waiting connection needs no buffer.
func peekSize(c *net.UnixConn) (size int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		for failed = unix.EINTR; failed == unix.EINTR; {
			size, _, failed = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_TRUNC)
		}
		return failed != unix.EAGAIN
	})
	switch {
	case err != nil:
		return 0, err
	case failed != nil:
		return 0, failed
	case size == 0:
		return 0, io.EOF
	}
	return size, nil
}

func replyError(c *net.UnixConn, err error) {
	a := Answer{Refused: errors.Is(err, errRefused)}
	if err != nil {
		a.Error = err.Error()
	}
	sendAnswer(c, a)
}

func sendAnswer(c *net.UnixConn, a Answer) bool {
	packet, err := json.Marshal(a)
	if err == nil {
		_, err = c.Write(packet)
	}
	return err == nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
