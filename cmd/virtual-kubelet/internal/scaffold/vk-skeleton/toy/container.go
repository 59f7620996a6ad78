// SPDX-License-Identifier: Apache-2.0

package toy

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// killed is the exit code of a process after SIGKILL.
const killed = 137

// Process is the environment of a container, or of a command in it.
type Process struct {
	Main           bool // false: a command in a container
	Command, Env   []string
	Stdin          io.Reader // nil: none
	Stdout, Stderr io.Writer
	Sizes          <-chan Size     // sizes of the terminal; nil without a terminal
	Stop           <-chan struct{} // closed when the group is asked to stop
	Listen         func(port int32) (net.Listener, error)
}

// Terminal follows the size of the terminal, until the session ends.
func (p Process) Terminal() (size func() (rows, columns int, err error), resized <-chan struct{}) {
	var mu sync.Mutex
	now := <-p.Sizes
	changed := make(chan struct{}, 1)
	go func() {
		for next := range p.Sizes {
			mu.Lock()
			now = next
			mu.Unlock()
			changed <- struct{}{}
		}
	}()
	return func() (int, int, error) {
		mu.Lock()
		defer mu.Unlock()
		return now.Rows, now.Columns, nil
	}, changed
}

// runDemo is the default behaviour of containers: they print their command without running it, and wait for a stop.
func runDemo(ctx context.Context, p Process) int32 {
	fmt.Fprintf(p.Stdout, "this is the toy, which would run: %s\n", strings.Join(p.Command, " "))
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

// container is a container of a group.
type container struct {
	server *Server
	group  *group
	spec   ContainerSpec

	// guarded by Server.mu
	now       Container
	kill      context.CancelFunc // of the present run
	log, last *runLog            // of the current run and of the previous run; nil without a run
}

// runContainer runs the container as often as the restart policy of its group requires.
func (k *container) runContainer() {
	delay := 10 * time.Millisecond
	for k.runOnce() {
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

func (k *container) set(change func()) {
	k.server.mu.Lock()
	defer k.server.mu.Unlock()
	change()
}

// runOnce runs the container once, and reports whether it must run again.
func (k *container) runOnce() (again bool) {
	ctx, kill := context.WithCancel(k.group.ctx)
	defer kill()
	log := &runLog{}
	k.set(func() {
		if k.log != nil {
			last := k.now.Run
			k.now.Last = &last
			k.now.Restarts++
		}
		k.server.runs++
		k.now.State, k.now.Run = stateRunning, Run{ID: strconv.Itoa(k.server.runs), Started: time.Now()}
		k.last, k.log, k.kill = k.log, log, kill
	})
	code := k.server.Work(ctx, Process{
		Main: true, Command: k.spec.Command, Env: k.spec.Env, Stdout: log, Stderr: log, Stop: k.group.stop, Listen: k.group.openPort,
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
	return again
}

// isRunning reports whether the container is running.
func (k *container) isRunning() (yes bool) {
	k.set(func() { yes = k.now.State == stateRunning })
	return yes
}

// openPort listens on a port of the group, at its address.
func (g *group) openPort(port int32) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(g.ctx, "tcp", net.JoinHostPort(g.address, strconv.Itoa(int(port))))
}
