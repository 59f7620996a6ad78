// SPDX-License-Identifier: Apache-2.0

package podjob

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	cri "k8s.io/cri-api/pkg/apis"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
)

// supervisor runs the pod of a job.
type supervisor struct {
	config  Config
	local   string // a directory of this machine
	written Status // owned by run; the last status that the host got
	bundle  *bundle
	devices *devices
	pods    *podruntime.Runtime
	wg      sync.WaitGroup

	changed chan struct{}
	mu      sync.Mutex
	last    *corev1.Pod // guarded by mu; the last reported pod
	streams int         // guarded by mu; number of sessions of exec, attach and port-forward
	status  Status      // owned by run
	quiet   chan struct{}
	clean   func() // makes the remaining files removable
}

// Defaults of Config.
const (
	defaultLookEvery = 5 * time.Second
	defaultKillGrace = 25 * time.Second
)

// Run runs the pod of a host until the pod has ended, or was stopped, and the last status is written. When ctx ends, all processes of the pod end.
func Run(ctx context.Context, c Config) error {
	c.LookEvery, c.KillGrace = cmp.Or(c.LookEvery, defaultLookEvery), cmp.Or(c.KillGrace, defaultKillGrace)
	if c.CDI == nil {
		c.CDI = usualCDI
	}
	if err := claimPod(ctx, c.Host); err != nil {
		return err
	}
	s := &supervisor{config: c, changed: make(chan struct{}, 1), quiet: make(chan struct{}, 1), clean: func() {}}
	var err error
	if s.bundle, err = openBundle(ctx, c.Host); err != nil {
		return err
	}
	if s.devices, err = claimDevices(s.bundle.Pod, s.bundle.DeviceKind, c.CDI); err != nil {
		return err
	}
	defer s.devices.release()
	if s.local, err = os.MkdirTemp("", "vk-job-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.local)
	defer func() { s.clean() }()
	// If mounts are not possible, volumes in memory are in this directory, because in any other they would outlive the job.
	if dir := filepath.Join("/dev/shm", filepath.Base(s.local)); os.Mkdir(dir, 0o700) == nil {
		defer os.RemoveAll(dir)
		if err := os.Setenv("XDG_RUNTIME_DIR", dir); err != nil {
			return err
		}
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.start(ctx); err != nil {
		return err
	}
	err = s.follow(ctx, signals)
	s.awaitSessions()
	cancel()
	s.wg.Wait()
	return err
}

// countSessions records the begin or end of sessions.
func (s *supervisor) countSessions(n int) {
	s.mu.Lock()
	s.streams += n
	s.mu.Unlock()
	select {
	case s.quiet <- struct{}{}:
	default:
	}
}

// awaitSessions waits for a short time, so that readers get the last output.
func (s *supervisor) awaitSessions() {
	late := time.After(lateOutput)
	for {
		s.mu.Lock()
		n := s.streams
		s.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-s.quiet:
		case <-late:
			return
		}
	}
}

func claimPod(ctx context.Context, host Host) error {
	ctx, cancel := context.WithTimeout(ctx, hostTime)
	defer cancel()
	if err := host.Claim(ctx); err != nil {
		return fmt.Errorf("claim the pod: %w", err)
	}
	return nil
}

// noEvents drops events, because the node only reads the status.
type noEvents struct{}

func (noEvents) Event(kruntime.Object, string, string, string)          {}
func (noEvents) Eventf(kruntime.Object, string, string, string, ...any) {}

// start makes the runtime of pods, and passes the pod to it.
func (s *supervisor) start(ctx context.Context) error {
	address := hostAddress()
	s.bundle.address = address
	node := s.bundle.Node.DeepCopy()
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	r := newRuntime(s.local, address)
	lacks, notes := Lacks()
	if r.writeDNS = s.config.WriteDNS; r.writeDNS {
		delete(lacks, capability.DNS)
	}
	var store cri.ImageManagerService = images{s.local}
	switch s.bundle.Runtime {
	case RuntimePodman:
		r.store = newPodman(s.local)
	case RuntimeUnpack:
		r.store = newUnpacker(s.local, s.config.Pull)
	}
	if r.store != nil {
		store, s.clean = r.store, r.store.clean
	}
	r.devices, r.keepVariable, r.confine, r.started = s.devices, s.config.KeepVariable, s.config.Confine, s.config.Started
	var err error
	if s.config.Hide != "" {
		if r.hidden, err = filepath.EvalSymlinks(s.config.Hide); err != nil {
			return err
		}
	}
	pids := int64(0)
	if s.config.CgroupParent != "" {
		pids = podPids()
	}
	s.pods, err = podruntime.New(podruntime.Config{
		CgroupParent: s.config.CgroupParent, PodPidsLimit: pids, Runtime: r, Images: store, Node: node, Recorder: noEvents{},
		Root: filepath.Join(s.local, "pods"), LogRoot: s.config.LogDir, ClusterDomain: s.bundle.DNSDomain, ClusterDNS: s.bundle.ClusterDNS,
		MachineNetwork: true, KeepLogs: true, Lacks: lacks, Notes: notes,
	})
	if err != nil {
		return err
	}
	s.pods.UsePodObjects(s.bundle)
	s.pods.UsePodTokens(s.bundle)
	s.pods.UsePullCredentials(s.bundle)
	s.pods.NotifyPods(ctx, func(pod *corev1.Pod) {
		s.mu.Lock()
		s.last = pod.DeepCopy()
		s.mu.Unlock()
		select {
		case s.changed <- struct{}{}:
		default:
		}
	})
	l, err := net.Listen("unix", filepath.Join(s.local, "s")) //nolint:noctx // it has no name to look up
	if err != nil {
		return err
	}
	s.status = Status{Job: s.config.Job, Host: s.config.Machine, Socket: filepath.Join(s.local, "s")}
	s.wg.Go(func() { _ = s.pods.RunInBackground(ctx) })
	for _, l := range []net.Listener{l, s.config.Listener} {
		if l != nil {
			s.wg.Go(func() { s.serve(ctx, l) })
		}
	}
	return s.pods.CreatePod(ctx, s.bundle.Pod.DeepCopy())
}

// write sends a new status of the pod to the host. It skips an unchanged status, because the node treats each status as a change.
func (s *supervisor) write(ctx context.Context) error {
	if equality.Semantic.DeepEqual(s.status, s.written) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, hostTime)
	defer cancel()
	if err := s.config.Host.WriteStatus(ctx, s.status); err != nil {
		return fmt.Errorf("write the status of the pod: %w", err)
	}
	s.written = s.status
	return nil
}

// lastWrite is the time limit for retries of the last status.
const lastWrite = 10 * time.Minute

// follow writes each status of the pod until the pod has ended and the last status is written. It retries a failed write while the pod continues.
func (s *supervisor) follow(ctx context.Context, signals <-chan os.Signal) error {
	ticker := time.NewTicker(s.config.LookEvery)
	defer ticker.Stop()
	stopping, failing := false, false
	var over time.Time
	var begun sync.Once
	var sawTick bool
	var late os.Signal
	for {
		sig, look := late, false
		if late = nil; sig == nil {
			select {
			case <-s.changed:
			case <-ticker.C:
				sawTick = true // the startup is over, even if the pod still waits
				look = !stopping
			case <-s.config.Wake:
				look = true
			case sig = <-signals:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if grace, cause, asked := s.findOrder(ctx, sig, look); asked {
			if err := s.stop(ctx, grace); err != nil {
				return err
			}
			stopping = true
			if cause != "" && s.status.Cause == "" {
				s.status.Cause = cause
			}
		}
		s.mu.Lock()
		last := s.last
		s.mu.Unlock()
		if last != nil {
			s.status.Pod = *last.Status.DeepCopy()
		}
		terminal := last != nil && (last.Status.Phase == corev1.PodSucceeded || last.Status.Phase == corev1.PodFailed)
		if stopping && !terminal {
			_, err := s.pods.GetPod(ctx, s.bundle.Pod.Namespace, s.bundle.Pod.Name)
			terminal = errdefs.IsNotFound(err)
		}
		if terminal && !stopping {
			if late = lateSignal(signals); late != nil {
				continue
			}
		}
		s.status.Ended, s.status.Stopped = terminal, stopping
		if terminal && over.IsZero() {
			over = time.Now()
		}
		err := s.write(ctx)
		if sawTick || s.status.Pod.Phase != "" && s.status.Pod.Phase != corev1.PodPending {
			begun.Do(usualHeap)
		}
		if terminal && (err == nil || time.Since(over) >= lastWrite) {
			return err
		}
		if err != nil && !failing {
			fmt.Fprintf(os.Stderr, "%v: it is tried again\n", err)
		}
		failing = err != nil
	}
}

// signalSpread is the time that a busy machine may take to signal all processes of a job.
const signalSpread = 200 * time.Millisecond

// lateSignal returns the job's signal that may have ended a pod, if there is one. The signal reaches the processes of containers and the supervisor
// in any order, so a process that ended just before the supervisor's signal may have been killed by it.
func lateSignal(signals <-chan os.Signal) os.Signal {
	select {
	case sig := <-signals:
		return sig
	case <-time.After(signalSpread):
	}
	select { // both may have arrived
	case sig := <-signals:
		return sig
	default:
		return nil
	}
}

// usualHeap restores the default garbage collection, because a host may start with a larger heap, and many supervisors may share a machine.
func usualHeap() { debug.SetGCPercent(100) }

// findOrder returns the remaining time of the pod, if a signal or the host orders a stop.
func (s *supervisor) findOrder(ctx context.Context, sig os.Signal, look bool) (grace int64, cause string, asked bool) {
	if sig == syscall.SIGTERM || sig == syscall.SIGINT {
		grace = int64(s.config.KillGrace / time.Second)
		if g := s.bundle.Pod.Spec.TerminationGracePeriodSeconds; g != nil {
			grace = min(grace, *g)
		}
		return grace, "SIGTERM", true
	}
	if sig == nil && !look {
		return 0, "", false
	}
	ctx, cancel := context.WithTimeout(ctx, hostTime)
	defer cancel()
	if stop, err := s.config.Host.StopOrder(ctx); err == nil && stop != nil {
		return stop.GraceSeconds, "", true
	}
	return 0, "", false // the host is asked again later
}

func (s *supervisor) stop(ctx context.Context, grace int64) error {
	pod := s.bundle.Pod.DeepCopy()
	pod.DeletionGracePeriodSeconds = &grace
	if err := s.pods.DeletePod(ctx, pod); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// hostAddress returns an address at which other machines reach this machine, if it finds one.
func hostAddress() string {
	addresses, _ := net.InterfaceAddrs() // without interfaces, the loopback address is used
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	return "127.0.0.1"
}
