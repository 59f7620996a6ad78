// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shim

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// drainTime limits the wait for output from a pipe that stays open after the end of the process.
const drainTime = 200 * time.Millisecond

// streams are the shim's ends of the streams of a process.
type streams struct {
	stdin, stdout, stderr *os.File
	tty                   bool
	copiers               *copiers
}

// childIO are the process's ends of the streams. With a terminal, all of them are the terminal.
type childIO struct{ stdin, stdout, stderr *os.File }

func (c *childIO) close() {
	for _, f := range []*os.File{c.stdin, c.stdout, c.stderr} {
		if f != nil {
			f.Close()
		}
	}
}

// openStdio opens the streams of a process. A terminal is opened later, in the namespace of the process.
func openStdio(tty, stdin bool) (s streams, c *childIO, err error) {
	s, c = streams{tty: tty, copiers: &copiers{}}, &childIO{}
	if tty {
		return s, c, nil
	}
	defer func() {
		if err != nil {
			s.close()
			c.close()
		}
	}()
	if stdin {
		c.stdin, s.stdin, err = os.Pipe()
	} else {
		c.stdin, err = os.Open(os.DevNull)
	}
	if err != nil {
		return s, c, err
	}
	if s.stdout, c.stdout, err = os.Pipe(); err != nil {
		return s, c, err
	}
	s.stderr, c.stderr, err = os.Pipe()
	return s, c, err
}

// openNull connects all streams to the null device.
func (c *childIO) openNull() error {
	for _, f := range []**os.File{&c.stdin, &c.stdout, &c.stderr} {
		var err error
		if *f, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
			return err
		}
	}
	return nil
}

func (c *childIO) fileDescriptors() []uintptr {
	// Fd also makes the file blocking, as the process expects.
	return []uintptr{c.stdin.Fd(), c.stdout.Fd(), c.stderr.Fd()}
}

// chownStreams changes the owner of the streams, so that the user can open them as /dev/stdout.
func (c *childIO) chownStreams(uid, gid uint32) {
	for _, f := range []*os.File{c.stdin, c.stdout, c.stderr} {
		if f.Name() != os.DevNull {
			_ = f.Chown(int(uid), int(gid))
		}
	}
}

func (s *streams) close() {
	for _, f := range []*os.File{s.stdin, s.stdout, s.stderr} {
		if f != nil {
			f.Close()
		}
	}
}

// copiers are the goroutines that read the output of a process.
type copiers struct {
	wg sync.WaitGroup
	// guarded by mu
	mu     sync.Mutex
	exited bool
}

// copyOutput passes all output to write, until EOF or until drainOutput gives up.
func (s *streams) copyOutput(write func(stream string, p []byte)) {
	s.copiers.wg.Go(func() { s.copiers.copyStream(s.stdout, "stdout", write) })
	if s.stderr != nil {
		s.copiers.wg.Go(func() { s.copiers.copyStream(s.stderr, "stderr", write) })
	}
}

func (c *copiers) copyStream(f *os.File, stream string, write func(string, []byte)) {
	buf := make([]byte, 32<<10)
	for last := false; ; {
		n, err := f.Read(buf)
		if n > 0 {
			write(stream, buf[:n])
		}
		switch {
		case err == nil && c.hasExited():
			_ = f.SetReadDeadline(time.Now().Add(drainTime))
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && !last:
			// Try once more: the deadline may have passed during a slow write, with unread output left.
			last = true
			_ = f.SetReadDeadline(time.Now().Add(drainTime))
		default:
			return
		}
	}
}

func (c *copiers) hasExited() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exited
}

// drainOutput waits until the output of an ended process has been read.
func (s *streams) drainOutput() {
	s.copiers.mu.Lock()
	s.copiers.exited = true
	s.copiers.mu.Unlock()
	for _, f := range []*os.File{s.stdout, s.stderr} {
		if f != nil {
			_ = f.SetReadDeadline(time.Now().Add(drainTime))
		}
	}
	s.copiers.wg.Wait()
	s.close()
}

// inlet is the standard input of the main process, which several clients can write to.
type inlet struct {
	// guarded by mu
	mu sync.Mutex
	w  *os.File
}

func (i *inlet) write(p []byte) error {
	i.mu.Lock()
	w := i.w
	i.mu.Unlock()
	if w == nil {
		return syscall.EPIPE
	}
	_, err := w.Write(p)
	return err
}

func (i *inlet) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.w != nil {
		i.w.Close()
		i.w = nil
	}
}

// broadcast sends output to every attached client.
type broadcast struct {
	// guarded by mu
	mu      sync.Mutex
	clients map[*client]struct{}
	last    *done
}

// client is an attached client. A client that does not read is dropped, so that the container does not block.
type client struct {
	queue chan queued
	drop  func()
}

type queued struct {
	k       kind
	payload []byte
	last    *done
}

func newBroadcast() *broadcast { return &broadcast{clients: map[*client]struct{}{}} }

func (b *broadcast) addClient(drop func()) *client {
	c := &client{queue: make(chan queued, 256), drop: drop}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last != nil {
		c.queue <- queued{last: b.last}
	}
	b.clients[c] = struct{}{}
	return c
}

func (b *broadcast) removeClient(c *client) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.clients, c)
}

func (b *broadcast) sendFrame(k kind, p []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.clients {
		b.pushFrame(c, queued{k: k, payload: append([]byte(nil), p...)})
	}
}

func (b *broadcast) pushFrame(c *client, q queued) {
	select {
	case c.queue <- q:
	default:
		delete(b.clients, c)
		c.drop()
	}
}

// endClients sends the final message to all clients, including later ones.
func (b *broadcast) endClients(d done) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = &d
	for c := range b.clients {
		b.pushFrame(c, queued{last: &d})
	}
}
