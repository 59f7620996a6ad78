// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"sync"
	"time"

	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// programWorld returns the environment of a program in a run of the container.
func (k *container) programWorld(r *run) program.World {
	var env []string
	for _, v := range k.spec.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	return program.World{
		Stdout: io.Discard, Stderr: io.Discard, Env: env, Stop: r.stop,
		Read:  func(name string) ([]byte, fs.FileMode, error) { return k.read(r, name) },
		Write: func(name string, data []byte) error { return k.write(r, name, data) },
		Listen: func(ctx context.Context, port int32) (net.Listener, error) {
			return k.pod.cloud.listenPort(k.pod, port)
		},
	}
}

// runCommand runs a command in a run of the container.
func (k *container) runCommand(ctx context.Context, r *run, command []string, attach api.AttachIO) (int32, error) {
	if len(command) != 2 || !isProgram(command[0]) {
		return 126, fmt.Errorf("command %q: want program and a program.Program", command)
	}
	p, err := program.Parse(command[1:])
	if err != nil {
		return 126, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(r.ctx, cancel)
	defer stop()
	w := k.programWorld(r)
	if attach != nil {
		wireStreams(ctx, &w, attach)
	}
	code := p.Run(ctx, w)
	return code, ctx.Err()
}

// wireStreams connects a program with the streams of a caller.
func wireStreams(ctx context.Context, w *program.World, attach api.AttachIO) {
	if in := attach.Stdin(); in != nil {
		r, typed := io.Pipe()
		context.AfterFunc(ctx, func() { r.CloseWithError(io.EOF) })
		go func() { // ends with the caller's input, or with its reader
			_, err := io.Copy(typed, in)
			typed.CloseWithError(err)
		}()
		w.Stdin = r
	}
	if out := attach.Stdout(); out != nil {
		w.Stdout = out
	}
	if errors := attach.Stderr(); errors != nil {
		w.Stderr = errors
	} else if attach.TTY() {
		w.Stderr = w.Stdout
	}
	if !attach.TTY() {
		return
	}
	var mu sync.Mutex
	var size api.TermSize
	resized := make(chan struct{}, 1)
	if first, ok := <-attach.Resize(); ok {
		size = first
	}
	go func() { // ends with the session, which closes the channel
		for next := range attach.Resize() {
			mu.Lock()
			size = next
			mu.Unlock()
			resized <- struct{}{}
		}
	}()
	w.Resized = resized
	w.Size = func() (int, int, error) {
		mu.Lock()
		defer mu.Unlock()
		return int(size.Height), int(size.Width), nil
	}
}

// runningContainer returns the run of a container, which must be under way.
func (p *Provider) runningContainer(namespace, podName, name string) (*container, *run, error) {
	k, err := p.findContainer(namespace, podName, name)
	if err != nil {
		return nil, nil, err
	}
	p.cloud.mu.Lock()
	defer p.cloud.mu.Unlock()
	if k.run == nil || k.run.hasEnded() {
		return nil, nil, errdefs.InvalidInputf("container %s of pod %s/%s does not run", name, namespace, podName)
	}
	return k, k.run, nil
}

// RunInContainer runs a command in a container.
func (p *Provider) RunInContainer(ctx context.Context, namespace, podName, containerName string, cmd []string, attach api.AttachIO) error {
	k, r, err := p.runningContainer(namespace, podName, containerName)
	if err != nil {
		return err
	}
	code, err := k.runCommand(ctx, r, cmd, attach)
	if err == nil && code != 0 {
		err = utilexec.CodeExitError{Err: fmt.Errorf("the command ended with exit code %d", code), Code: int(code)}
	}
	return err
}

// AttachToContainer shows the output of a container from now on, and passes the typed input to the container.
func (p *Provider) AttachToContainer(ctx context.Context, namespace, podName, containerName string, attach api.AttachIO) error {
	_, r, err := p.runningContainer(namespace, podName, containerName)
	if err != nil {
		return err
	}
	lines, _, _ := r.log.linesFrom(0) // before the input, so that the effects of the input show
	if in := attach.Stdin(); in != nil {
		go func() { // ends with the caller's input
			_, err := io.Copy(r.typed, in)
			r.typed.CloseWithError(err)
		}()
	}
	reader := logs.NewReader(ctx, &source{log: r.log, next: len(lines)}, api.ContainerLogOpts{Follow: true}, time.Now())
	defer reader.Close()
	out := attach.Stdout()
	if out == nil {
		out = nopCloser{io.Discard}
	}
	_, err = io.Copy(out, reader)
	return err
}

type nopCloser struct{ io.Writer }

// Close does nothing.
func (nopCloser) Close() error { return nil }

// listenPort opens a port of a pod. Programs listen on virtual ports that only the cloud knows; only PortForward
// connects to them.
func (c *Cloud) listenPort(p *pod, port int32) (net.Listener, error) {
	l := newPipeListener()
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.ports == nil {
		p.ports = map[int32]*pipeListener{}
	}
	p.ports[port] = l
	return l, nil
}

// PortForward copies between a port of a pod and stream.
func (p *Provider) PortForward(ctx context.Context, namespace, pod string, port int32, stream io.ReadWriteCloser) error {
	c := p.cloud
	if err := c.injectedFault(); err != nil {
		return err
	}
	c.mu.Lock()
	q := c.findPod(namespace, pod)
	var l *pipeListener
	if q != nil {
		l = q.ports[port]
	}
	c.mu.Unlock()
	if q == nil {
		return errdefs.NotFoundf("pod %s/%s is not there", namespace, pod)
	}
	if l == nil {
		return fmt.Errorf("port %d of pod %s/%s: connection refused", port, namespace, pod)
	}
	conn, err := l.dialPipe(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close(); stream.Close() })
	defer stop()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(stream, conn)
		stream.Close()
	})
	_, err = io.Copy(conn, stream)
	conn.Close()
	back.Wait()
	if errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return err
}

// pipeListener is a port without a network.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) dialPipe(ctx context.Context) (net.Conn, error) {
	mine, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return mine, nil
	case <-l.done:
	case <-ctx.Done():
	}
	return nil, errors.New("connection refused")
}

// Accept waits for a connection.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close closes the port.
func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr returns an empty address, because the listener has no network.
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }
