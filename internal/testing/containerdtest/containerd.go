// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerdtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testlog"
)

const (
	// startTime is long enough for a busy machine: a start usually takes half a second.
	startTime = 2 * time.Minute
	// stopTime is the time after which a containerd that does not end is killed.
	stopTime = 30 * time.Second
)

// Containerd is a private containerd.
type Containerd struct {
	// Dir is containerd's directory. Users may have files there; Close removes it.
	Dir string
	// Bridge is the name of the bridge of the pods' network, Subnet its network.
	Bridge, Subnet string
	// CgroupParent is a cgroup for pods, which Close removes with all below it.
	CgroupParent string

	options Options
	slot    *slot
	said    testlog.Tail
	close   func() error

	mu     sync.Mutex
	daemon *daemon // nil after a stop
}

// daemon is one run of the program.
type daemon struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the daemon has ended
	err   error         // read after ended
}

// New starts a containerd and returns when it can run pods.
func New(ctx context.Context, options Options) (*Containerd, error) {
	if err := Missing(); err != nil {
		return nil, err
	}
	s, err := takeSlot()
	if err != nil {
		return nil, err
	}
	if options.Bridge == "" {
		options.Bridge = s.bridgeName()
	}
	if options.Subnet == "" {
		options.Subnet = s.subnetRange()
	}
	if options.CgroupParent == "" {
		options.CgroupParent = s.cgroupPath()
	}
	if options.Program == "" {
		options.Program = "containerd"
	}
	c := &Containerd{Dir: s.dir, Bridge: options.Bridge, Subnet: options.Subnet, CgroupParent: options.CgroupParent, options: options, slot: s}
	c.close = sync.OnceValue(c.remove)
	if err := c.startClean(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a containerd: %w", err), c.Close(), errors.New(c.Said()))
	}
	return c, nil
}

// startClean removes the remains of an earlier process from the slot, and starts containerd.
func (c *Containerd) startClean(ctx context.Context) error {
	if err := c.removeRemains(); err != nil {
		return err
	}
	if err := c.writeConfig(); err != nil {
		return err
	}
	if err := c.Resume(ctx); err != nil {
		return err
	}
	pause, err := PauseImage(ctx, pauseImage)
	if err != nil {
		return err
	}
	return c.Import(ctx, pause)
}

// Resume starts containerd again after Stop or Kill.
func (c *Containerd) Resume(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.daemon != nil {
		return errors.New("containerd runs already")
	}
	argv := []string{c.options.Program, "--config", c.slot.filePath("containerd.toml")}
	if file := c.options.NetworkNamespace; file != "" {
		argv = append([]string{"nsenter", "--net=" + file}, argv...) // nsenter becomes the program
	}
	d := &daemon{cmd: exec.Command(argv[0], argv[1:]...), ended: make(chan struct{})} //nolint:noctx // Stop ends the process
	d.cmd.Stdout, d.cmd.Stderr = &c.said, &c.said
	// containerd ends when this process dies, whatever the cause. Its containers do not; see removeRemains.
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	started := make(chan error, 1)
	go d.run(started)
	if err := <-started; err != nil {
		return fmt.Errorf("start containerd: %w", err)
	}
	c.daemon = d
	return c.awaitReady(ctx, d)
}

// run starts the program and waits for its end, on one thread: the death of the thread that started a process
// counts as the death of its parent.
func (d *daemon) run(started chan<- error) {
	runtime.LockOSThread()
	defer close(d.ended)
	err := d.cmd.Start()
	started <- err
	if err == nil {
		d.err = d.cmd.Wait()
	}
}

// awaitReady returns when runtime and network are ready.
func (c *Containerd) awaitReady(ctx context.Context, d *daemon) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := c.checkReady(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-d.ended:
			return fmt.Errorf("containerd ended: %w", errors.Join(d.err, err))
		case <-ctx.Done():
			return fmt.Errorf("wait for containerd: %w", errors.Join(ctx.Err(), err))
		case <-ticker.C:
		}
	}
}

// checkReady returns nil when containerd can run pods.
func (c *Containerd) checkReady(ctx context.Context) error {
	if _, err := os.Stat(c.socketPath()); err != nil {
		return fmt.Errorf("find the socket: %w", err)
	}
	conn, err := c.Connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	status, err := runtimeapi.NewRuntimeServiceClient(conn).Status(ctx, &runtimeapi.StatusRequest{})
	if err != nil {
		return fmt.Errorf("ask containerd for its status: %w", err)
	}
	for _, condition := range status.GetStatus().GetConditions() {
		if !condition.GetStatus() {
			return fmt.Errorf("%s is false: %s: %s", condition.GetType(), condition.GetReason(), condition.GetMessage())
		}
	}
	return nil
}

// PID returns the process ID of containerd, or 0 when it is stopped.
func (c *Containerd) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.daemon == nil {
		return 0
	}
	return c.daemon.cmd.Process.Pid
}

// Connect returns a connection to containerd, to be closed after use.
func (c *Containerd) Connect() (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(c.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to containerd: %w", err)
	}
	return conn, nil
}

// Stop stops containerd with a signal; its containers keep running.
func (c *Containerd) Stop() error { return c.sendSignal(syscall.SIGTERM) }

// Kill kills containerd; its containers keep running.
func (c *Containerd) Kill() error { return c.sendSignal(syscall.SIGKILL) }

func (c *Containerd) sendSignal(sig syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.daemon
	if d == nil {
		return nil
	}
	c.daemon = nil
	_ = d.cmd.Process.Signal(sig) // an error means that the daemon has ended
	select {
	case <-d.ended:
		return nil
	case <-time.After(stopTime):
		_ = d.cmd.Process.Kill()
		<-d.ended
		return fmt.Errorf("containerd did not end within %v of %v", stopTime, sig)
	}
}

// Restart stops containerd and starts it again.
func (c *Containerd) Restart(ctx context.Context) error {
	if err := c.Stop(); err != nil {
		return err
	}
	return c.Resume(ctx)
}

// Said returns the last lines of containerd's log.
func (c *Containerd) Said() string { return c.said.String() }
