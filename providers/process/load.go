// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/durable"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// sweepEvery is the interval of retries for failed removals.
const sweepEvery = time.Minute

// leftover is the directory of an incomplete sandbox or container: the daemon ended while creating or removing
// it, or its record cannot be read.
type leftover struct {
	id, dir string
	remove  func(ctx context.Context, id, dir string) error
}

// loadRecords restores the containers of an earlier daemon. An unreadable record affects only its own pod:
// loadRecords ends and removes the pod, and podruntime starts it again.
func (r *Runtime) loadRecords(ctx context.Context) error {
	if err := r.loadEach(ctx, "sandboxes", r.loadSandbox, r.removeBrokenSandbox); err != nil {
		return err
	}
	if err := r.loadEach(ctx, "containers", r.loadContainer, r.removeBrokenContainer); err != nil {
		return err
	}
	r.sweepLeftovers(ctx)
	return nil
}

// loadEach loads all sandboxes or all containers. Directories that cannot be loaded become leftovers.
func (r *Runtime) loadEach(ctx context.Context, kind string, load func(ctx context.Context, id, dir string) error, remove func(ctx context.Context, id, dir string) error) error {
	parent := filepath.Join(r.config.StateDir, kind)
	entries, err := os.ReadDir(parent)
	if err != nil {
		return fmt.Errorf("read the state of an earlier process: %w", err)
	}
	for _, e := range entries {
		id, dir := e.Name(), filepath.Join(parent, e.Name())
		err := load(ctx, id, dir)
		if err == nil {
			continue
		}
		if durable.Passing(err) {
			return fmt.Errorf("read the state of an earlier process in %s; nothing is changed: %w", dir, err)
		}
		if _, missing := os.Lstat(filepath.Join(dir, recordFile)); errors.Is(missing, fs.ErrNotExist) {
			log.G(ctx).Infof("process provider: %s was being made or removed when an earlier process ended; it is removed", dir)
		} else {
			log.G(ctx).WithError(err).Errorf("process provider: the state in %s is broken; its processes are ended, it is removed, and its pod begins anew", dir)
		}
		r.leftovers = append(r.leftovers, leftover{id, dir, remove})
	}
	return nil
}

func (r *Runtime) loadSandbox(_ context.Context, id, dir string) error {
	var record sandboxRecord
	config := &runtimeapi.PodSandboxConfig{}
	if err := loadRecord(dir, &record, config); err != nil {
		return err
	}
	s := &sandbox{
		id: id, dir: dir, config: config, created: record.Created, stopped: record.Stopped, stopRecorded: record.Stopped,
		addresses: record.Addresses, held: record.Network,
	}
	// A sandbox with an incomplete network, or with a network that was lost in a reboot, counts as stopped, so
	// that it is replaced.
	s.stopped = s.stopped || (s.held && len(s.addresses) == 0) || r.lostNetwork(s)
	r.sandboxes[id] = s
	return nil
}

func (r *Runtime) loadContainer(ctx context.Context, id, dir string) error {
	var record containerRecord
	config := &runtimeapi.ContainerConfig{}
	if err := loadRecord(dir, &record, config); err != nil {
		return err
	}
	state, err := shim.ReadState(dir)
	switch {
	case err != nil:
		return err
	case r.sandboxes[record.Sandbox] == nil:
		return fmt.Errorf("its sandbox %s is not there", record.Sandbox)
	case r.overlay && !r.images.Has(record.ImageID):
		return fmt.Errorf("its image %s is not there", record.ImageID)
	}
	c := &container{id: id, dir: dir, config: config, containerRecord: record}
	r.containers[id] = c
	switch {
	case state.Ended() && c.Spec.OCI != nil:
		// The supervisor may have been killed with the daemon, and may have left processes.
		if err := r.discardContainer(ctx, c); err != nil {
			log.G(ctx).WithError(err).Errorf("process provider: container %s has ended; it is tried again with its removal", id)
		}
	case state.Started() && !state.Ended():
		r.watchLater(c)
	}
	return nil
}

// sweepAgain retries the failed removals of the start until ctx ends.
func (r *Runtime) sweepAgain(ctx context.Context) {
	again := time.NewTicker(sweepEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			r.sweepLeftovers(ctx)
		}
	}
}

// sweepLeftovers retries failed removals, and removes files that belong to no image.
func (r *Runtime) sweepLeftovers(ctx context.Context) {
	var again []leftover
	for _, l := range r.leftovers {
		if err := l.remove(ctx, l.id, l.dir); err != nil {
			log.G(ctx).WithError(err).Errorf("process provider: remove %s; it is tried again in %v", l.dir, sweepEvery)
			again = append(again, l)
		}
	}
	r.leftovers = again
	if len(again) > 0 {
		return // the image of an unreadable container is unknown, and the container may still run
	}
	if err := r.images.Sweep(); err != nil {
		log.G(ctx).WithError(err).Errorf("process provider: remove files without an image; trying again in %v", sweepEvery)
	}
}

// removeBrokenSandbox releases the network of a sandbox with an unreadable record, and removes the sandbox.
func (r *Runtime) removeBrokenSandbox(ctx context.Context, id, dir string) error {
	s := &sandbox{id: id, dir: dir, config: &runtimeapi.PodSandboxConfig{}}
	// Another daemon may have had another isolation.
	if s.guestKept() {
		if err := endUnknown(ctx, s.supervisorDir()); err != nil {
			return err
		}
	}
	if r.oci.isGVisor() {
		group := r.cgroups.findGroup(id)
		group.Kill()
		if err := errors.Join(discardRemains(ctx, s.supervisorDir(), r.oci.guestOf(id, s)), group.Remove()); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(s.netnsPath()); err == nil {
		if err := r.leaveNetwork(ctx, s); err != nil {
			return err
		}
	}
	return removeRecorded(dir)
}

// removeBrokenContainer ends the processes of a container with an unreadable record, and removes it.
func (r *Runtime) removeBrokenContainer(ctx context.Context, id, dir string) error {
	if err := endUnknown(ctx, dir); err != nil {
		return err
	}
	group := r.cgroups.findGroup(id)
	group.Kill()
	if r.oci != nil {
		if err := discardRemains(ctx, dir, r.oci.containerOf(id)); err != nil {
			return err
		}
	}
	// Another daemon may have had another isolation.
	if err := shim.UnmountRoot(dir); err != nil {
		return err
	}
	if err := group.Remove(); err != nil {
		return err
	}
	return removeRecorded(dir)
}

// endUnknown ends the processes of the container in dir without its files: the supervisor is the process with
// that working directory.
func endUnknown(ctx context.Context, dir string) error {
	supervisors, err := workingIn(dir)
	if err != nil || len(supervisors) == 0 {
		return err
	}
	return endSupervisors(ctx, dir, supervisors...)
}

// endSupervisors ends the supervisors of the container in dir, usually one, and with them the container.
func endSupervisors(ctx context.Context, dir string, supervisors ...shim.Process) error {
	ctx, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	// Ask first: the supervisor also ends processes that left the container's session. A supervisor that does
	// not answer is killed, and the kernel kills its container.
	asked := shim.Kill(ctx, dir)
	for _, p := range supervisors {
		if asked == nil {
			asked = shim.WaitGone(ctx, p)
		}
		if err := shim.KillProcess(p); err != nil {
			return err
		}
	}
	return nil
}

// workingIn returns the processes of this machine with the working directory dir.
func workingIn(dir string) ([]shim.Process, error) {
	want, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	var found []shim.Process
	entries, err := os.ReadDir("/proc")
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without /proc, no process can be found
		return nil, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		path := filepath.Join("/proc", e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// A user's shell may have the same working directory.
		if args, err := os.ReadFile(filepath.Join(path, "cmdline")); err != nil || !strings.HasPrefix(string(args), shim.Argv0+"\x00") {
			continue
		}
		p := shim.ProcessOf(pid)
		// A process that cannot be examined belongs to another user.
		if at, err := os.Stat(filepath.Join(path, "cwd")); err == nil && os.SameFile(at, want) {
			found = append(found, p)
		}
	}
	return found, nil
}
