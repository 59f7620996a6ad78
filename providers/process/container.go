// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/durable"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/images"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// containerRecord is the record of a container on disk. Its configuration and state are in other files.
type containerRecord struct {
	Sandbox  string
	Created  time.Time
	ImageID  string
	ImageRef string
	// Image is the name of the image, if it has one.
	Image      string
	StopSignal int
	Spec       shim.Spec
}

func (r *containerRecord) checkRecord() error {
	if r.Created.IsZero() || r.Sandbox == "" {
		return errors.New("it does not say when the container was made, or for which sandbox")
	}
	return nil
}

// publicRecord returns the record for the disk, without values that may be secret.
func (r containerRecord) publicRecord() containerRecord {
	r.Spec = r.Spec.Public()
	return r
}

// publicConfig returns a configuration for the disk, without values that may be secret.
func publicConfig(c *runtimeapi.ContainerConfig) *runtimeapi.ContainerConfig {
	out := proto.CloneOf(c)
	out.Envs, out.Command, out.Args = nil, nil, nil
	return out
}

type container struct {
	containerRecord
	id, dir string
	config  *runtimeapi.ContainerConfig

	// working is held while the container is started, changed or removed.
	working sync.Mutex
	// guarded by mu
	mu    sync.Mutex
	shim  *exec.Cmd
	going *shim.State // the last state, set before the files are removed
}

// readState returns the state of the container. During a removal it returns the last state, because the state
// file goes first and a container without that file would count as new.
func (c *container) readState() (shim.State, error) {
	state, err := shim.ReadState(c.dir)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.going != nil { // checked after the read, because going is set before the removal
		return *c.going, nil
	}
	return state, err
}

// reapShim waits for the shim process, if this process started it.
func (c *container) reapShim() {
	c.mu.Lock()
	cmd := c.shim
	c.shim = nil
	c.mu.Unlock()
	if cmd != nil {
		_ = cmd.Wait() // the state file has the exit status
	}
}

// CreateContainer creates the directory of a container and its root file system.
func (r *Runtime) CreateContainer(ctx context.Context, sandboxID string, config *runtimeapi.ContainerConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	s, err := r.findSandbox(sandboxID)
	if err != nil {
		return "", err
	}
	if r.sandboxState(s) != runtimeapi.PodSandboxState_SANDBOX_READY {
		return "", status.Errorf(codes.FailedPrecondition, "sandbox %s is stopped", sandboxID)
	}
	if config.GetMetadata() == nil {
		return "", status.Error(codes.InvalidArgument, "the container has no metadata")
	}
	image, err := r.imageFor(ctx, config.GetImage().GetImage())
	if err != nil {
		return "", err
	}
	c := &container{id: newID(), config: config}
	c.dir = filepath.Join(r.config.StateDir, "containers", c.id)
	c.containerRecord = containerRecord{Sandbox: sandboxID, Created: time.Now(), ImageID: image.ID, ImageRef: imageRef(image), Image: imageName(image)}
	if c.Spec, err = r.containerSpec(ctx, s, c, image); err != nil {
		return "", err
	}
	c.StopSignal = int(stopSignal(config.GetStopSignal(), image.Config.StopSignal))
	err = saveRecord(c.dir, new(c.publicRecord()), publicConfig(config))
	if err == nil {
		err = r.makeRoot(c, image)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("make the container: %w", err), discardRemains(ctx, c.dir, c.Spec.OCI), removeRecorded(c.dir))
	}
	r.mu.Lock()
	r.containers[c.id] = c
	r.mu.Unlock()
	r.publishEvent(c.id, c.Sandbox, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	return c.id, nil
}

// imageFor returns the image of a container. Isolation none has no images.
func (r *Runtime) imageFor(ctx context.Context, ref string) (images.Image, error) {
	if !r.isContained() {
		return hostImage(ref), nil
	}
	image, err := r.images.Get(ctx, ref)
	if errdefs.IsNotFound(err) {
		return images.Image{}, status.Errorf(codes.NotFound, "image %q is not on this node", ref)
	}
	return image, err
}

// StartContainer starts the process.
func (r *Runtime) StartContainer(ctx context.Context, id string) error {
	c, err := r.findContainer(id)
	if err != nil {
		return err
	}
	c.working.Lock()
	defer c.working.Unlock()
	if ctx.Err() != nil { // no caller waits for the start any more
		return ctx.Err()
	}
	return r.startProcess(ctx, c)
}

// startProcess starts the process, unless the container was started, removed, or stopped with its sandbox meanwhile.
// The caller holds working.
func (r *Runtime) startProcess(ctx context.Context, c *container) error {
	if _, err := r.findContainer(c.id); err != nil {
		return err
	}
	if r.sandboxStopped(c.Sandbox) {
		return status.Errorf(codes.FailedPrecondition, "sandbox %s of container %s is stopped", c.Sandbox, c.id)
	}
	state, err := c.readState()
	if err != nil {
		return err
	}
	if state.Started() {
		return status.Errorf(codes.FailedPrecondition, "container %s was started before", c.id)
	}
	if len(c.Spec.Argv) == 0 {
		return status.Errorf(codes.FailedPrecondition, "container %s was made by an earlier daemon, and its command is not on disk: make it again", c.id)
	}
	group, err := r.cgroups.groupsBelow(r.podCgroup(c)).makeGroup(c.id, c.config.GetLinux().GetResources())
	if err != nil {
		return fmt.Errorf("make the cgroup of the container: %w", err)
	}
	if !reflect.DeepEqual(group, c.Spec.Cgroup) { // otherwise the record is up to date
		record := c.publicRecord()
		record.Spec.Cgroup = group
		if err := durable.WriteJSON(filepath.Join(c.dir, recordFile), record); err != nil {
			return err // the record of the container on the disk stays unchanged
		}
		c.Spec.Cgroup = group
	}
	cmd, err := shim.Start(ctx, c.dir, c.Spec)
	if err != nil {
		if left := r.discardContainer(context.WithoutCancel(ctx), c); left != nil {
			log.G(ctx).WithError(left).Errorf("process provider: remove the leftovers of container %s; its removal tries again", c.id)
		}
		return status.Error(codes.Unknown, err.Error())
	}
	c.mu.Lock()
	c.shim = cmd
	c.mu.Unlock()
	r.watchLater(c)
	r.publishEvent(c.id, c.Sandbox, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	return nil
}

// StopContainer asks the main process to end, and kills all remaining processes after timeout seconds.
func (r *Runtime) StopContainer(ctx context.Context, id string, timeout int64) error {
	c, err := r.findContainer(id)
	if status.Code(err) == codes.NotFound {
		return nil
	}
	c.working.Lock() // a start in progress comes first
	state, err := c.readState()
	c.working.Unlock()
	if err != nil || !state.Started() || state.Ended() {
		return err
	}
	if timeout > 0 {
		if err := c.askToStop(ctx, time.Duration(timeout)*time.Second); err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return r.killContainer(ctx, c, state)
}

// askToStop sends the stop signal, and waits up to grace for the end.
func (c *container) askToStop(ctx context.Context, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if err := shim.Signal(ctx, c.dir, syscall.Signal(c.StopSignal)); err != nil {
		return err
	}
	return shim.Wait(ctx, c.dir)
}

// killTime limits how long a shim may take to kill its container.
const killTime = 10 * time.Second

// killContainer asks the shim to kill the container. If that fails, it kills the shim, and the kernel kills the
// container.
func (r *Runtime) killContainer(ctx context.Context, c *container, state shim.State) error {
	bounded, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	kill := shim.Kill
	if r.endsGuest(c) {
		kill = shim.KillWithSandbox
	}
	err := kill(bounded, c.dir)
	if err == nil {
		err = shim.Wait(bounded, c.dir)
	}
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if err := errors.Join(shim.KillProcess(state.Init), shim.KillProcess(state.Shim)); err != nil {
		return fmt.Errorf("kill container %s: %w", c.id, err)
	}
	c.reapShim()
	return shim.Wait(ctx, c.dir)
}

// RemoveContainer removes a container, and kills it first if it runs. It keeps the log.
func (r *Runtime) RemoveContainer(ctx context.Context, id string) error {
	c, err := r.findContainer(id)
	if err != nil {
		return nil //nolint:nilerr // removing a missing container is no error
	}
	c.working.Lock()
	defer c.working.Unlock()
	state, err := c.readState()
	if err == nil && state.Started() && !state.Ended() {
		if err = r.killContainer(ctx, c, state); err == nil {
			state, err = c.readState()
		}
	}
	if err != nil {
		return err
	}
	c.reapShim()
	if err := r.discardContainer(ctx, c); err != nil {
		return err
	}
	c.mu.Lock()
	c.going = &state
	c.mu.Unlock()
	if err := removeRecorded(c.dir); err != nil {
		return fmt.Errorf("remove container %s: %w", id, err)
	}
	r.mu.Lock()
	delete(r.containers, id)
	r.mu.Unlock()
	r.publishEvent(id, c.Sandbox, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
	return nil
}

// discardContainer removes the resources of an ended container that are outside of its directory.
func (r *Runtime) discardContainer(ctx context.Context, c *container) error {
	if c.Spec.OCI != nil {
		c.Spec.Cgroup.Kill() // processes left by a killed supervisor in a shared pid namespace
	}
	if err := discardRemains(ctx, c.dir, c.Spec.OCI); err != nil {
		return fmt.Errorf("remove the leftovers of container %s: %w", c.id, err)
	}
	return c.Spec.Cgroup.Remove()
}

// ReopenContainerLog continues the log in a new file.
func (r *Runtime) ReopenContainerLog(ctx context.Context, id string) error {
	c, err := r.findContainer(id)
	if err != nil {
		return err
	}
	return shim.Reopen(ctx, c.dir)
}

// UpdateContainerResources changes the limits of a container.
func (r *Runtime) UpdateContainerResources(_ context.Context, id string, resources *runtimeapi.ContainerResources) error {
	c, err := r.findContainer(id)
	if err != nil {
		return err
	}
	c.working.Lock()
	defer c.working.Unlock()
	if c.config.Linux == nil {
		c.config.Linux = &runtimeapi.LinuxContainerConfig{}
	}
	if err := r.cgroups.updateLimits(c.Spec.Cgroup, resources.GetLinux()); err != nil {
		return fmt.Errorf("change the limits of container %s: %w", id, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.config.Linux.Resources = resources.GetLinux()
	return nil
}
