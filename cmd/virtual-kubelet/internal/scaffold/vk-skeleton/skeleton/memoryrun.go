// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// killed is the exit code of a process that was ended by SIGKILL.
const killed = 137

// demo is what containers do as long as nothing else is said: they tell what they would run, and wait for their end.
func demo(ctx context.Context, p process) int32 {
	fmt.Fprintf(p.Stdout, "this is skeleton in memory, which would run: %s\n", strings.Join(p.Command, " "))
	if !p.Main {
		return 0
	}
	select {
	case <-p.Stop:
		return 0
	case <-ctx.Done():
		return killed
	}
}

// memoryContainer is a container of a memoryGroup.
type memoryContainer struct {
	memory *memory
	group  *memoryGroup
	spec   containerSpec

	// guarded by memory.mu
	now       container
	kill      context.CancelFunc // of the present run
	log, last *memoryLog         // of the present run and of the one before, nil before there were any
}

// live runs the container as often as the policy of its group says.
func (k *memoryContainer) live() {
	delay := 10 * time.Millisecond
	for k.once() {
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
			delay = min(2*delay, 10*time.Second)
		case <-k.group.stop:
			k.set(func() { k.now.State = stateStopped })
			return
		case <-k.group.ctx.Done():
			k.set(func() { k.now.State = stateStopped })
			return
		}
	}
}

func (k *memoryContainer) set(change func()) {
	k.memory.mu.Lock()
	defer k.memory.mu.Unlock()
	change()
}

// once is one run; it reports whether there is a next one.
func (k *memoryContainer) once() (again bool) {
	ctx, kill := context.WithCancel(k.group.ctx)
	defer kill()
	log := newMemoryLog()
	k.set(func() {
		if k.log != nil {
			last := k.now.Run
			k.now.Last = &last
			k.now.Restarts++
		}
		k.memory.runs++
		k.now.State, k.now.Run = stateRunning, run{ID: fmt.Sprint(k.memory.runs), Started: time.Now()}
		k.last, k.log, k.kill = k.log, log, kill
	})
	code := k.memory.work(ctx, process{
		Main: true, Command: k.spec.Command, Env: k.spec.Env, Stdout: log, Stderr: log, Stop: k.group.stop,
		Listen: func(port int32) net.Listener { return k.group.listen(k.memory, port) },
	})
	if ctx.Err() != nil {
		code = killed
	}
	asked := false
	select {
	case <-k.group.stop:
		asked = true
	default:
	}
	again = !asked && k.group.ctx.Err() == nil &&
		(k.group.spec.Restart == "always" || k.group.spec.Restart == "on-failure" && code != 0)
	k.set(func() {
		k.now.Run.Finished, k.now.Run.ExitCode = time.Now(), &code
		if k.now.State = stateStopped; again {
			k.now.State = stateWaiting
		}
	})
	log.end()
	return again
}

// Exec does the work of a command, which ends with the container and with ctx.
func (m *memory) Exec(ctx context.Context, id, name string, command []string, s session) (int, error) {
	k, err := m.container(ctx, id, name)
	if err != nil {
		return 0, err
	}
	m.mu.Lock()
	runs := k.now.State == stateRunning
	m.mu.Unlock()
	if !runs {
		return 0, errdefs.InvalidInputf("container %s does not run", name)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(k.group.ctx, cancel)()
	p := process{
		Command: command, Env: k.spec.Env, Stdout: s.Stdout, Stderr: s.Stderr, Stop: k.group.stop, Session: s,
		Listen: func(port int32) net.Listener { return k.group.listen(m, port) },
	}
	if s.Stdin != nil {
		in, typed := io.Pipe()
		defer context.AfterFunc(ctx, func() { in.CloseWithError(io.EOF) })()
		defer in.Close()
		go func() { // ends with what is typed, or when nobody reads it any more
			_, err := io.Copy(typed, s.Stdin)
			typed.CloseWithError(err)
		}()
		p.Stdin = in
	}
	code := m.work(ctx, p)
	return int(code), ctx.Err()
}

// listen opens a port. Nothing but Dial leads there.
func (g *memoryGroup) listen(m *memory, number int32) net.Listener {
	l := &port{conns: make(chan net.Conn), done: make(chan struct{})}
	m.mu.Lock()
	defer m.mu.Unlock()
	g.ports[number] = l
	return l
}

// Dial connects with a port.
func (m *memory) Dial(ctx context.Context, id string, number int32) (net.Conn, error) {
	unlock, err := m.request(ctx)
	if err != nil {
		return nil, err
	}
	g, err := m.find(id)
	var l *port
	if err == nil {
		l = g.ports[number]
	}
	unlock()
	if err != nil {
		return nil, err
	}
	refused := errors.New("connection refused")
	if l == nil {
		return nil, refused
	}
	mine, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return mine, nil
	case <-l.done:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// port is a port without a network.
type port struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// Accept waits for a connection.
func (l *port) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close closes the port.
func (l *port) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr is nowhere.
func (*port) Addr() net.Addr { return &net.TCPAddr{} }
