// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/record"
	cri "k8s.io/cri-api/pkg/apis"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
)

// supervisor runs the pod of a job.
type supervisor struct {
	dir     string // on the shared file system
	local   string // on this machine
	written Status // owned by run: what the file says
	bundle  *bundle
	pods    *podruntime.Runtime
	wg      sync.WaitGroup

	changed chan struct{}
	mu      sync.Mutex
	last    *corev1.Pod // guarded by mu: as it was reported
	streams int         // guarded by mu: sessions of exec, attach and port-forward
	status  Status      // owned by run
	quiet   chan struct{}
	clean   func() // makes what is left removable
}

// run runs the pod in dir until it has ended, or was told to stop.
func run(dir string) error {
	if err := claim(dir); err != nil {
		return err
	}
	s := &supervisor{dir: dir, changed: make(chan struct{}, 1), quiet: make(chan struct{}, 1), clean: func() {}}
	var err error
	if s.bundle, err = openBundle(dir); err != nil {
		return err
	}
	if s.local, err = os.MkdirTemp("", "vk-job-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.local)
	defer func() { s.clean() }()
	// Where nothing can be mounted, volumes in memory are in this directory, which would outlive the job elsewhere.
	if dir := filepath.Join("/dev/shm", filepath.Base(s.local)); os.Mkdir(dir, 0o700) == nil {
		defer os.RemoveAll(dir)
		if err := os.Setenv("XDG_RUNTIME_DIR", dir); err != nil {
			return err
		}
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancel(context.Background())
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

// counted takes in that sessions began, or ended.
func (s *supervisor) counted(n int) {
	s.mu.Lock()
	s.streams += n
	s.mu.Unlock()
	select {
	case s.quiet <- struct{}{}:
	default:
	}
}

// awaitSessions gives what was written last some time to get to its readers.
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

// claim takes the pod for this job. Of two jobs for one pod, as when the answer to a submission got lost, the second one does nothing.
func claim(dir string) error {
	path, own := filepath.Join(dir, ClaimFile), os.Getenv("SLURM_JOB_ID")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(own)
		return errors.Join(err, f.Close())
	}
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	other, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return fmt.Errorf("job %s runs this pod, or has run it: job %s does nothing", strings.TrimSpace(string(other)), own)
}

// start makes the runtime of pods, and gives it the pod.
func (s *supervisor) start(ctx context.Context) error {
	address := hostAddress()
	s.bundle.address = address
	node := s.bundle.Node.DeepCopy()
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	r := newRuntime(s.local, address)
	lacks, notes := Lacks()
	var store cri.ImageManagerService = images{s.local}
	switch s.bundle.Runtime {
	case RuntimePodman:
		r.store = newPodman(s.local)
	case RuntimeUnpack:
		r.store = newUnpacker(s.local)
	}
	if r.store != nil {
		store, s.clean = r.store, r.store.clean
	}
	var err error
	// The directory of a pod is sharedDir/CLUSTER/NODE/UID: no pod is to read the files of others.
	if r.hidden, err = filepath.EvalSymlinks(filepath.Join(s.dir, "..", "..", "..")); err != nil {
		return err
	}
	s.pods, err = podruntime.New(podruntime.Config{
		Runtime: r, Images: store, Node: node, Recorder: &record.FakeRecorder{},
		Root: filepath.Join(s.local, "pods"), LogRoot: filepath.Join(s.dir, LogDir), ClusterDomain: s.bundle.DNSDomain,
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
	s.status = Status{Job: os.Getenv("SLURM_JOB_ID"), Host: os.Getenv("SLURMD_NODENAME"), Socket: filepath.Join(s.local, "s")}
	s.wg.Go(func() { _ = s.pods.RunInBackground(ctx) })
	s.wg.Go(func() { s.serve(ctx, l) })
	return s.pods.CreatePod(ctx, s.bundle.Pod.DeepCopy())
}

// write writes down how the pod is, if that is new: the node takes each new file for a change.
func (s *supervisor) write() error {
	if equality.Semantic.DeepEqual(s.status, s.written) {
		return nil
	}
	if err := ShowJSON(filepath.Join(s.dir, StatusFile), s.status); err != nil {
		return fmt.Errorf("write the status of the pod: %w", err)
	}
	s.written = s.status
	return nil
}

// lookEvery is how often the directory is looked into for what no signal told.
const lookEvery = 5 * time.Second

// killGrace is how long containers have when Slurm ends the job: by default it kills after 30 s.
const killGrace = 25

// lastWrite is how long it is tried to write down how the pod ended.
const lastWrite = 10 * time.Minute

// follow writes down how the pod is until it has ended, and that is written. What cannot be written is tried again: the pod runs on.
func (s *supervisor) follow(ctx context.Context, signals <-chan os.Signal) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	stopping, failing := false, false
	var over time.Time
	var begun sync.Once
	var sawTick bool
	var late os.Signal
	for {
		sig := late
		if late = nil; sig == nil {
			select {
			case <-s.changed:
			case <-ticker.C:
				sawTick = true // it begins no more, whatever its pod waits for
			case sig = <-signals:
			}
		}
		if grace, cause, asked := s.order(sig); asked {
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
		err := s.write()
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

// signalSpread is how long Slurm, on a busy machine, takes to signal all processes of a job.
const signalSpread = 200 * time.Millisecond

// lateSignal returns the signal of Slurm that a pod may have ended by, if there is one. It goes to the processes of containers and to the
// supervisor, in any order: what ended just before the supervisor got its own did not end by itself.
func lateSignal(signals <-chan os.Signal) os.Signal {
	select {
	case sig := <-signals:
		return sig
	case <-time.After(signalSpread):
	}
	select { // both may have come
	case sig := <-signals:
		return sig
	default:
		return nil
	}
}

// usualHeap gives the heap the room that programs have: see script. Many supervisors may share a machine.
func usualHeap() { debug.SetGCPercent(100) }

// order is what a signal, or the directory, says.
func (s *supervisor) order(sig os.Signal) (grace int64, cause string, asked bool) {
	if sig == syscall.SIGTERM || sig == syscall.SIGINT {
		grace = killGrace
		if g := s.bundle.Pod.Spec.TerminationGracePeriodSeconds; g != nil {
			grace = min(grace, *g)
		}
		return grace, "SIGTERM", true
	}
	var stop Stop
	if err := ReadJSON(filepath.Join(s.dir, StopFile), &stop); err == nil && (sig != nil || !s.status.Stopped) {
		return stop.GraceSeconds, "", true
	}
	return 0, "", false
}

func (s *supervisor) stop(ctx context.Context, grace int64) error {
	pod := s.bundle.Pod.DeepCopy()
	pod.DeletionGracePeriodSeconds = &grace
	if err := s.pods.DeletePod(ctx, pod); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// hostAddress is an address of this machine that others reach, as far as it can be told.
func hostAddress() string {
	addresses, _ := net.InterfaceAddrs() // without one there is the loopback
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	return "127.0.0.1"
}
