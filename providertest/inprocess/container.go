// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"context"
	"fmt"
	"io"
	"path"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// container is a container of a pod.
type container struct {
	pod           *pod
	spec          *corev1.Container
	program       program.Program
	init, sidecar bool
	begun         chan struct{} // closed when its first run has begun

	// guarded by pod.cloud.mu
	run      *run // nil before the first run
	last     *run // the previous run
	restarts int32
	waits    bool // for its next run
	ready    bool
	started  bool // by its startup probe
}

// run is one run of a container.
type run struct {
	id      string
	log     *log
	stop    chan struct{} // closed when the run is asked to stop
	once    sync.Once     // of stop
	ctx     context.Context
	kill    context.CancelFunc
	done    chan struct{} // closed when the run has ended
	files   *volume       // its own root
	stdin   *io.PipeReader
	typed   *io.PipeWriter
	started time.Time

	// set before done is closed
	finished time.Time
	code     int32
	reason   string // "": the exit code decides
	message  string
}

func (r *run) hasEnded() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func (r *run) askStop() { r.once.Do(func() { close(r.stop) }) }

func newContainer(p *pod, spec *corev1.Container, init bool) (*container, error) {
	var prog program.Program
	if startsProgram(spec) {
		var err error
		if prog, err = program.Parse(spec.Args); err != nil {
			return nil, errdefs.InvalidInputf("container %s: %w", spec.Name, err)
		}
	}
	always := spec.RestartPolicy != nil && *spec.RestartPolicy == corev1.ContainerRestartPolicyAlways
	return &container{pod: p, spec: spec.DeepCopy(), program: prog, init: init, sidecar: init && always, begun: make(chan struct{})}, nil
}

// runContainer runs the container as often as the restart policy requires, until ending.
func (k *container) runContainer(ending <-chan struct{}) {
	for n := int32(0); ; n++ {
		k.runOnce(n, ending)
		if !k.runsAgain(ending) {
			return
		}
		delay := time.NewTimer(restartDelay)
		select {
		case <-delay.C:
		case <-ending:
			delay.Stop()
			k.markChange(func() { k.waits = false })
			return
		case <-k.pod.ctx.Done():
			delay.Stop()
			k.markChange(func() { k.waits = false })
			return
		}
	}
}

// runsAgain reports whether the container runs again, and marks it as waiting for that.
func (k *container) runsAgain(ending <-chan struct{}) (again bool) {
	select {
	case <-ending:
		return false
	case <-k.pod.ctx.Done():
		return false
	default:
	}
	k.markChange(func() {
		switch policy := k.pod.spec.Spec.RestartPolicy; {
		case k.sidecar:
			again = true
		case k.init:
			again = policy != corev1.RestartPolicyNever && k.run.code != 0
		default:
			again = policy == corev1.RestartPolicyAlways || policy == corev1.RestartPolicyOnFailure && k.run.code != 0
		}
		k.waits = again
	})
	return again
}

// markChange changes the container and reports the change.
func (k *container) markChange(change func()) {
	c := k.pod.cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	c.sendState(k.pod)
}

// runOnce does one run.
func (k *container) runOnce(n int32, ending <-chan struct{}) {
	r := &run{log: newLog(), stop: make(chan struct{}), done: make(chan struct{}), files: &volume{}, started: time.Now()}
	r.ctx, r.kill = context.WithCancel(k.pod.ctx)
	defer r.kill()
	r.stdin, r.typed = io.Pipe()
	stopInput := context.AfterFunc(r.ctx, func() { r.stdin.CloseWithError(io.EOF) })
	defer stopInput()
	if !startsProgram(k.spec) {
		k.failStart(n, r)
		return
	}
	k.markChange(func() {
		c := k.pod.cloud
		c.runs++
		r.id = fmt.Sprintf("inprocess://%d", c.runs)
		k.last, k.run, k.restarts, k.waits = k.run, r, n, false
		k.started = k.spec.StartupProbe == nil
		k.ready = k.started && k.spec.ReadinessProbe == nil
	})
	if n == 0 {
		close(k.begun)
	}
	var helpers sync.WaitGroup
	helpers.Go(func() { k.probeRun(r) })
	helpers.Go(func() { // passes the request to stop on, after the hook
		select {
		case <-ending:
			k.runHook(r, func(l *corev1.Lifecycle) *corev1.LifecycleHandler { return l.PreStop })
			r.askStop()
		case <-r.ctx.Done():
		}
	})
	k.runHook(r, func(l *corev1.Lifecycle) *corev1.LifecycleHandler { return l.PostStart })
	world := k.programWorld(r)
	world.Stdin, world.Stdout, world.Stderr, world.Stop = nil, r.log, r.log, r.stop
	if k.spec.Stdin {
		world.Stdin = r.stdin
	}
	code := k.program.Run(r.ctx, world)
	if r.ctx.Err() != nil {
		code = 137
	}
	message, _, _ := world.Read(k.spec.TerminationMessagePath)
	r.kill()
	helpers.Wait()
	k.markChange(func() {
		r.finished, r.code, r.message = time.Now(), code, string(message)
		k.ready = false
		close(r.done)
		r.log.markComplete()
	})
}

// failStart ends a run that cannot start, in the way a kubelet shows it: as a run that never began.
func (k *container) failStart(n int32, r *run) {
	k.markChange(func() {
		c := k.pod.cloud
		c.runs++
		r.id, r.finished, r.code, r.reason = fmt.Sprintf("inprocess://%d", c.runs), r.started, 128, "StartError"
		r.message = fmt.Sprintf("exec %q: the only command is program", k.spec.Command[0])
		k.last, k.run, k.restarts, k.waits = k.run, r, n, false
		close(r.done)
		r.log.markComplete()
	})
	if n == 0 {
		close(k.begun)
	}
}

// startsProgram reports whether the command of a container exists.
func startsProgram(c *corev1.Container) bool { return len(c.Command) == 0 || isProgram(c.Command[0]) }

// isProgram reports whether a command runs a program.Program.
func isProgram(command string) bool {
	return path.Base(command) == "program" || path.Base(command) == "contractprogram"
}

// exitCode returns the exit code of the last run.
func (k *container) exitCode() int32 {
	k.pod.cloud.mu.Lock()
	defer k.pod.cloud.mu.Unlock()
	if k.run == nil || !k.run.hasEnded() {
		return -1
	}
	return k.run.code
}

// runHook runs a hook of the container.
func (k *container) runHook(r *run, which func(*corev1.Lifecycle) *corev1.LifecycleHandler) {
	if k.spec.Lifecycle == nil {
		return
	}
	if h := which(k.spec.Lifecycle); h != nil && h.Exec != nil {
		_, _ = k.runCommand(r.ctx, r, h.Exec.Command, nil) // as with a kubelet, the container continues
	}
}
