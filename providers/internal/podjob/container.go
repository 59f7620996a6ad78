// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podjob

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/enter"
)

// container is a program of the machine, with the mounts of the pod.
type container struct {
	id, sandbox string
	config      *runtimeapi.ContainerConfig
	created     time.Time
	spec        enter.Entry
	logPath     string
	stopSignal  syscall.Signal
	ended       chan struct{} // closed when all its processes have ended

	mu                sync.Mutex
	pid               int       // guarded by mu, as all below; 0 before the start
	started, finished time.Time // zero: not yet
	exitCode          int32
	lost              bool   // its end is unknown
	oomKilled         bool   // the kernel killed it because memory was used up
	startError        string // why the container never ran
	viewers           map[*viewer]bool
}

// CreateContainer records the configuration of a container. It refuses impossible settings of a container.
func (r *runtime) CreateContainer(ctx context.Context, sandboxID string, config *runtimeapi.ContainerConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	s, err := r.sandbox(sandboxID)
	if err != nil {
		return "", err
	}
	if r.sandboxState(s) != runtimeapi.PodSandboxState_SANDBOX_READY {
		return "", status.Errorf(codes.FailedPrecondition, "sandbox %s is stopped", sandboxID)
	}
	c := &container{id: newID(), sandbox: sandboxID, config: config, created: time.Now(), ended: make(chan struct{}), viewers: map[*viewer]bool{}}
	if c.spec, err = r.firstProcess(ctx, c.id, config); err != nil {
		return "", err
	}
	if parent := s.config.GetLinux().GetCgroupParent(); parent != "" {
		c.spec.Cgroup, c.spec.OOMScore = filepath.Join(cgroupRoot, parent, c.id), config.GetLinux().GetResources().GetOomScoreAdj()
		if err := makeCgroup(c.spec.Cgroup, config.GetLinux().GetResources()); err != nil {
			return "", err
		}
	}
	if config.GetLogPath() != "" && s.config.GetLogDirectory() != "" {
		c.logPath = filepath.Join(s.config.GetLogDirectory(), config.GetLogPath())
	}
	c.stopSignal = stopSignal(config.GetStopSignal())
	r.mu.Lock()
	r.containers[c.id] = c
	r.mu.Unlock()
	r.publish(c.id, sandboxID, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	return c.id, nil
}

// firstProcess returns the configuration of the container's first process.
func (r *runtime) firstProcess(ctx context.Context, id string, config *runtimeapi.ContainerConfig) (enter.Entry, error) {
	e := enter.Entry{
		Argv: append(slices.Clone(config.GetCommand()), config.GetArgs()...), Dir: cmp.Or(config.GetWorkingDir(), "/"),
		Root: filepath.Join(r.dir, "roots", id), Hide: r.hidden, NoNewPrivs: config.GetLinux().GetSecurityContext().GetNoNewPrivs(),
		Confined: r.confine,
	}
	of, err := r.useImage(ctx, &e, id, config)
	if err != nil {
		return e, err
	}
	e.Env = r.environment(config, of)
	if len(e.Argv) == 0 {
		return e, status.Error(codes.InvalidArgument, "the container needs a command: "+map[bool]string{
			true: "its image has none", false: "containers are programs of the job's node, and no image is used",
		}[of != nil])
	}
	if !filepath.IsAbs(e.Dir) {
		return e, status.Errorf(codes.InvalidArgument, "working directory %q: want an absolute path", e.Dir)
	}
	tmp := filepath.Join(r.dir, "tmp", id)
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return e, err
	}
	if err := os.Chmod(tmp, 0o777|os.ModeSticky); err != nil { //nolint:gosec // as any /tmp, in a directory of this user alone
		return e, err
	}
	e.Mounts = []enter.Mount{{Source: tmp, Target: "/tmp"}} // hides files of other pods
	if r.writeDNS {
		e.Mounts = append(e.Mounts, enter.Mount{Source: r.resolvConf(), Target: "/etc/resolv.conf", ReadOnly: true})
	}
	for _, m := range config.GetMounts() {
		if m.GetImage().GetImage() != "" {
			return e, status.Errorf(codes.InvalidArgument, "nothing can be mounted at %s: there are no images in a job", m.GetContainerPath())
		}
		e.Mounts = append(e.Mounts, enter.Mount{Source: m.GetHostPath(), Target: filepath.Join("/", m.GetContainerPath()), ReadOnly: m.GetReadonly()})
	}
	if err := r.devices.editEntry(&e, config, filepath.Join(r.dir, "over", id)); err != nil {
		return e, err
	}
	slices.SortStableFunc(e.Mounts, func(a, b enter.Mount) int {
		return cmp.Compare(strings.Count(a.Target, "/"), strings.Count(b.Target, "/"))
	})
	return e, setUser(&e, config.GetLinux().GetSecurityContext(), of)
}

// ofDevices are the prefixes of variables that select the devices of a process.
var ofDevices = []string{"CUDA_", "GPU_", "ROCR_", "HIP_", "ZE_"}

// ofUser are variables that are only valid with the machine's files.
var ofUser = []string{"TMPDIR", "USER", "LOGNAME", "HOME", "SHELL"}

// keepsVariable reports whether containers get a variable of this process.
func (r *runtime) keepsVariable(name string, of *Image) bool {
	switch {
	case slices.ContainsFunc(ofDevices, func(head string) bool { return strings.HasPrefix(name, head) }):
		return true
	case of == nil && slices.Contains(ofUser, name):
		return true
	}
	return r.keepVariable != nil && r.keepVariable(name)
}

// useImage sets the root of e to the image of the container. It does nothing if containers are programs of the machine.
func (r *runtime) useImage(ctx context.Context, e *enter.Entry, id string, config *runtimeapi.ContainerConfig) (*Image, error) {
	if r.store == nil {
		return nil, nil
	}
	of, err := r.store.find(ctx, config.GetImage().GetImage())
	switch {
	case err != nil:
		return nil, err
	case of == nil:
		return nil, status.Errorf(codes.NotFound, "image %s has gone", config.GetImage().GetImage())
	}
	if e.Image, err = r.store.unpack(ctx, of.ID); err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	e.Upper = filepath.Join(r.dir, "over", id)
	if len(config.GetCommand()) == 0 {
		e.Argv = slices.Clone(of.Config.Entrypoint)
		if len(config.GetArgs()) > 0 {
			e.Argv = append(e.Argv, config.GetArgs()...)
		} else {
			e.Argv = append(e.Argv, of.Config.Cmd...)
		}
	}
	e.Dir = cmp.Or(config.GetWorkingDir(), of.Config.WorkingDir, "/")
	return of, nil
}

// withDefault adds a variable if env lacks it.
func withDefault(env []string, name, value string) []string {
	if slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") }) {
		return env
	}
	return append(env, name+"="+value)
}

// environment merges the kept variables of this process, the image's and the configuration's.
func (r *runtime) environment(config *runtimeapi.ContainerConfig, of *Image) []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); r.keepsVariable(name, of) {
			env = append(env, v)
		}
	}
	at := map[string]int{}
	for i, v := range env {
		name, _, _ := strings.Cut(v, "=")
		at[name] = i
	}
	set := func(name, v string) {
		if i, ok := at[name]; ok {
			env[i] = v
			return
		}
		at[name] = len(env)
		env = append(env, v)
	}
	if of != nil {
		for _, v := range of.Config.Env {
			if name, _, ok := strings.Cut(v, "="); ok {
				set(name, v)
			}
		}
	}
	for _, e := range config.GetEnvs() {
		set(e.GetKey(), e.GetKey()+"="+string(e.GetValue()))
	}
	return env
}

// StartContainer starts the process.
func (r *runtime) StartContainer(_ context.Context, id string) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	c.mu.Lock()
	if !c.started.IsZero() || !c.finished.IsZero() {
		c.mu.Unlock()
		return status.Errorf(codes.FailedPrecondition, "container %s was started before", id)
	}
	log, err := openLog(cmp.Or(c.logPath, os.DevNull))
	if err != nil {
		c.mu.Unlock()
		return err
	}
	p, err := launchContainer(c.spec)
	if err != nil { // as with a kubelet, the container has ended, and only its restart policy starts it again
		if wasOOMKilled(c.spec.Cgroup) {
			err = fmt.Errorf("its memory limit of %d bytes is too small to start it: %w", c.config.GetLinux().GetResources().GetMemoryLimitInBytes(), err)
		}
		c.finished, c.exitCode, c.startError = time.Now(), startErrorCode, err.Error()
		c.mu.Unlock()
		log.close()
		close(c.ended)
		r.publish(c.id, c.sandbox, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
		return status.Error(codes.Unknown, err.Error())
	}
	c.pid, c.started = p.process.Pid, time.Now()
	c.mu.Unlock()
	if r.started != nil {
		r.started(c.config.GetMetadata().GetName(), p.process.Pid)
	}
	go func() {
		var copied sync.WaitGroup
		copied.Go(func() { log.copy("stdout", p.stdout, func(b []byte) { c.showOutput(b, false) }) })
		copied.Go(func() { log.copy("stderr", p.stderr, func(b []byte) { c.showOutput(b, true) }) })
		state, err := p.process.Wait()
		copied.Wait() // all writers ended with the first process of the namespace
		log.close()
		p.close()
		c.mu.Lock()
		if c.finished, c.lost = time.Now(), err != nil; !c.lost {
			c.exitCode, c.oomKilled = exitCode(state), wasOOMKilled(c.spec.Cgroup)
		}
		c.mu.Unlock()
		close(c.ended)
		_ = os.Remove(c.spec.Root)
		r.publish(c.id, c.sandbox, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	}()
	r.publish(c.id, c.sandbox, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	return nil
}

// startErrorCode is the kubelet's exit code for a container that did not start.
const startErrorCode = 128

// exitCode returns the exit code of a process in the convention of shells.
func exitCode(state *os.ProcessState) int32 {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int32(ws.Signal())
	}
	return int32(state.ExitCode()) //nolint:gosec // it has eight bits
}

// showOutput passes the container's output to attached readers without blocking.
func (c *container) showOutput(b []byte, stderr bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for v := range c.viewers {
		v.add(b, stderr)
	}
}

// StopContainer asks the process to end, and kills all remaining processes after timeout seconds.
func (r *runtime) StopContainer(ctx context.Context, id string, timeout int64) error {
	c, err := r.container(id)
	if err != nil {
		return nil //nolint:nilerr // what is not there does not run
	}
	c.mu.Lock()
	pid := c.pid
	c.mu.Unlock()
	if pid == 0 || c.hasEnded() {
		return nil
	}
	if timeout > 0 {
		_ = syscall.Kill(pid, c.stopSignal) // the process may have ended
		timer := time.NewTimer(time.Duration(timeout) * time.Second)
		defer timer.Stop()
		select {
		case <-c.ended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *container) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// RemoveContainer removes a container, and kills it if it runs. Its log stays.
func (r *runtime) RemoveContainer(ctx context.Context, id string) error {
	c, err := r.container(id)
	if err != nil {
		return nil //nolint:nilerr // removing what is not there is no error
	}
	if err := r.StopContainer(ctx, id, 0); err != nil {
		return err
	}
	_ = os.Remove(c.spec.Cgroup) // fails while a command ends in it; the removal of the pod's cgroup removes it then
	for _, dir := range []string{"tmp", "over"} {
		if err := os.RemoveAll(filepath.Join(r.dir, dir, id)); err != nil {
			return err
		}
	}
	r.mu.Lock()
	delete(r.containers, id)
	r.mu.Unlock()
	r.publish(id, c.sandbox, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
	return nil
}

// ReopenContainerLog does nothing, because logs rotate by themselves.
func (r *runtime) ReopenContainerLog(context.Context, string) error { return nil }

func (r *runtime) container(id string) (*container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.containers[id]; c != nil {
		return c, nil
	}
	return nil, status.Errorf(codes.NotFound, "container %q not found", id)
}

// containersOf returns the containers of a sandbox, oldest first. An empty sandbox selects all containers.
func (r *runtime) containersOf(sandbox string) []*container {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*container
	for _, c := range r.containers {
		if sandbox == "" || c.sandbox == sandbox {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *container) int { return a.created.Compare(b.created) })
	return all
}

// ContainerStatus returns the status of a container.
func (r *runtime) ContainerStatus(_ context.Context, id string, _ bool) (*runtimeapi.ContainerStatusResponse, error) {
	c, err := r.container(id)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.ContainerStatusResponse{Status: c.status()}, nil
}

func (c *container) state() runtimeapi.ContainerState {
	switch {
	case !c.finished.IsZero():
		return runtimeapi.ContainerState_CONTAINER_EXITED
	case !c.started.IsZero():
		return runtimeapi.ContainerState_CONTAINER_RUNNING
	}
	return runtimeapi.ContainerState_CONTAINER_CREATED
}

func (c *container) status() *runtimeapi.ContainerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &runtimeapi.ContainerStatus{
		Id: c.id, Metadata: c.config.GetMetadata(), State: c.state(), CreatedAt: c.created.UnixNano(),
		Image: c.config.GetImage(), ImageRef: c.config.GetImage().GetImage(), ImageId: c.config.GetImage().GetImage(),
		Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(), Mounts: c.config.GetMounts(),
		LogPath: c.logPath, StopSignal: c.config.GetStopSignal(),
	}
	if !c.started.IsZero() {
		s.StartedAt = c.started.UnixNano()
	}
	if !c.finished.IsZero() {
		s.FinishedAt, s.ExitCode, s.Reason = c.finished.UnixNano(), c.exitCode, "Completed"
		switch {
		case c.lost: // the kubelet's exit code for this reason
			s.ExitCode, s.Reason, s.Message = 128+int32(syscall.SIGKILL), "ContainerStatusUnknown", "nobody could wait for the process: how it ended is not known"
		case c.startError != "":
			s.Reason, s.Message = "StartError", c.startError
		case c.oomKilled:
			s.Reason = "OOMKilled"
		case c.exitCode != 0:
			s.Reason = "Error"
		}
	}
	return s
}

// ListContainers lists containers, oldest first.
func (r *runtime) ListContainers(_ context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	var list []*runtimeapi.Container
	for _, c := range r.containersOf(filter.GetPodSandboxId()) {
		s := c.status()
		if filter.GetId() != "" && filter.GetId() != c.id || !matchLabels(c.config.GetLabels(), filter.GetLabelSelector()) ||
			filter.GetState() != nil && filter.GetState().GetState() != s.GetState() {
			continue
		}
		list = append(list, &runtimeapi.Container{
			Id: c.id, PodSandboxId: c.sandbox, Metadata: c.config.GetMetadata(), State: s.GetState(), CreatedAt: c.created.UnixNano(),
			Image: s.GetImage(), ImageRef: s.GetImageRef(), ImageId: s.GetImageId(), Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
		})
	}
	return list, nil
}

// stopSignal returns the signal requested by the pod, or SIGTERM.
func stopSignal(asked runtimeapi.Signal) syscall.Signal {
	if n := signalNumber(strings.TrimPrefix(asked.String(), "SIGNAL_")); n != 0 {
		return n
	}
	return syscall.SIGTERM
}
