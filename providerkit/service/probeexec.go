// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec"
)

const (
	// sessionTime is the time within which a service must begin a command.
	sessionTime = 30 * time.Second
	// execEnd is a driver's time to end an overdue command.
	execEnd = 5 * time.Second
	// mostOutput bounds the kept output of a probe.
	mostOutput = 10 << 10
)

// Begun reports that the command of a session has begun, which starts the timeout of a probe. Exec of a driver must call it for every
// session.
func Begun(attach api.AttachIO) {
	if s, ok := attach.(*probeSession); ok {
		s.begin()
	}
}

// Shell returns a command in a shell for Exec of a driver. o has the settings of the service, and attach is the
// session of the caller. Write calls Begun.
func Shell(attach api.AttachIO, o shellexec.Options) *shellexec.Exec {
	o.TTY, o.Input, o.Begun = attach.TTY(), attach.Stdin() != nil, func() { Begun(attach) }
	if w := attach.Stdout(); w != nil {
		o.Stdout = w
	}
	return shellexec.New(o)
}

// exec runs the command of a probe. An error other than an exit code or the timeout of the command is not a result of the probe.
func (p *prober[T]) exec(ctx context.Context, id string, command []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	p.mu.Lock()
	c := p.byID[id]
	p.mu.Unlock()
	executor, can := p.driver.(Executor[T])
	if c == nil || !can {
		return nil, nil, errors.New("the container cannot be asked")
	}
	pod, instance, there := p.cache.Get(c.uid)
	if !there {
		return nil, nil, errors.New("the pod is gone")
	}
	in := Target[T]{Pod: pod, Instance: instance, Container: c.container, State: StateOf(pod, c.container)}
	if err := in.isRunning(); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &probeSession{cancel: cancel, timeout: timeout}
	s.limit = time.AfterFunc(sessionTime, func() { cancel(errNotBegun) })
	defer s.stop()
	err = executor.Exec(ctx, in, command, s)
	stdout, stderr = s.output()
	var exit exec.ExitError
	switch cause := context.Cause(ctx); {
	case err == nil || errors.As(err, &exit):
		return stdout, stderr, err
	case errors.Is(cause, errTooLong):
		return stdout, stderr, context.DeadlineExceeded
	case errors.Is(cause, errNotBegun):
		return nil, nil, fmt.Errorf("the command did not begin within %s", sessionTime)
	}
	return nil, nil, errors.New(err.Error()) // without its kinds: the deadline of the request is not the timeout of the command
}

var (
	errNotBegun = errors.New("the command did not begin")
	errTooLong  = errors.New("the command took too long")
)

// probeSession is the session of a probe. It has no input, and bounds the kept output.
type probeSession struct {
	cancel  context.CancelCauseFunc
	timeout time.Duration

	mu       sync.Mutex
	limit    *time.Timer // guarded by mu; ends the session
	begun    bool        // guarded by mu
	out, err []byte      // guarded by mu
}

// begin starts the timeout of the command, once.
func (s *probeSession) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun {
		return
	}
	s.begun = true
	s.limit.Stop()
	s.limit = time.AfterFunc(s.timeout, func() { s.cancel(errTooLong) })
}

func (s *probeSession) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = true
	s.limit.Stop()
}

func (s *probeSession) output() (stdout, stderr []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out, s.err
}

// Stdin implements api.AttachIO.
func (*probeSession) Stdin() io.Reader { return nil }

// Stdout implements api.AttachIO.
func (s *probeSession) Stdout() io.WriteCloser { return probeOutput{s, &s.out} }

// Stderr implements api.AttachIO.
func (s *probeSession) Stderr() io.WriteCloser { return probeOutput{s, &s.err} }

// TTY implements api.AttachIO.
func (*probeSession) TTY() bool { return false }

// Resize implements api.AttachIO.
func (*probeSession) Resize() <-chan api.TermSize { return nil }

// probeOutput keeps the beginning of an output.
type probeOutput struct {
	session *probeSession
	kept    *[]byte
}

// Write implements io.Writer. Output of the command shows that it has begun.
func (o probeOutput) Write(data []byte) (int, error) {
	o.session.begin()
	o.session.mu.Lock()
	defer o.session.mu.Unlock()
	*o.kept = append(*o.kept, data[:min(len(data), mostOutput-len(*o.kept))]...)
	return len(data), nil
}

// Close implements io.Closer.
func (probeOutput) Close() error { return nil }
