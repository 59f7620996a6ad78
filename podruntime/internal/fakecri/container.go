// SPDX-License-Identifier: Apache-2.0

package fakecri

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// container is the state of a container, guarded by Runtime.mu.
type container struct {
	id            string
	sandbox       *sandbox
	config        *runtimeapi.ContainerConfig
	sandboxConfig *runtimeapi.PodSandboxConfig
	image         *image
	resources     *runtimeapi.LinuxContainerResources
	usage         Usage

	state                      runtimeapi.ContainerState
	created, started, finished int64
	exit                       exit
	life                       Life
	stopping                   bool // the container was asked to end
	timers                     []*time.Timer
	log                        *os.File
	done                       chan struct{} // closed when the container has ended
}

// CreateContainer creates a container in a ready sandbox, from an image on the machine.
func (c *Client) CreateContainer(ctx context.Context, sandboxID string, config *runtimeapi.ContainerConfig, sandboxConfig *runtimeapi.PodSandboxConfig) (string, error) {
	subject := podName(sandboxConfig) + "/" + config.GetMetadata().GetName()
	return runCall(ctx, c, "CreateContainer", subject, func() (string, error) {
		return c.runtime.createContainer(sandboxID, config, sandboxConfig)
	})
}

func (r *Runtime) createContainer(sandboxID string, config *runtimeapi.ContainerConfig, sandboxConfig *runtimeapi.PodSandboxConfig) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sandboxes[sandboxID]
	switch {
	case s == nil:
		return "", status.Errorf(codes.NotFound, "failed to find sandbox id %q: not found", sandboxID)
	case !s.ready:
		return "", status.Errorf(codes.Unknown, "failed to get sandbox container task: no running task found: task %s not found", sandboxID)
	case config.GetMetadata().GetName() == "":
		return "", status.Error(codes.InvalidArgument, "container config must include a name")
	}
	for _, other := range r.containers {
		if o, m := other.config.GetMetadata(), config.GetMetadata(); other.sandbox == s && o.Name == m.Name && o.Attempt == m.Attempt {
			return "", status.Errorf(codes.Unknown, "failed to reserve container name %q: name is reserved for %q", m.Name, other.id)
		}
	}
	image := r.findImage(config.GetImage().GetImage())
	if image == nil {
		return "", status.Errorf(codes.NotFound, "failed to resolve image %q: not found", config.GetImage().GetImage())
	}
	c := &container{
		id: r.newID(), sandbox: s, config: cloneMessage(config), sandboxConfig: cloneMessage(sandboxConfig), image: image, created: nowNanos(),
		state: runtimeapi.ContainerState_CONTAINER_CREATED, done: make(chan struct{}),
	}
	c.resources = cloneMessage(config.GetLinux().GetResources())
	r.containers[c.id] = c
	r.made = append(r.made, c.config)
	r.sendEvent(s, c.id, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	return c.id, nil
}

// StartContainer starts a created container for the first time.
func (c *Client) StartContainer(ctx context.Context, id string) error {
	return c.runAction(ctx, "StartContainer", id, func() error { return c.runtime.startContainer(id) })
}

func (r *Runtime) startContainer(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[id]
	switch {
	case c == nil:
		return notFound("container", id)
	case c.state != runtimeapi.ContainerState_CONTAINER_CREATED:
		return status.Errorf(codes.Unknown, "container is in %s state", c.state)
	}
	life := r.lifeOf(c)
	err := life.StartError
	if !c.sandbox.ready {
		err = status.Errorf(codes.Unknown, "sandbox container %q is not running", c.sandbox.id)
	}
	if err == nil {
		err = c.openLog()
	}
	if err != nil {
		r.finishContainer(c, exit{code: 128, reason: "StartError", message: err.Error()})
		return status.Error(codes.Unknown, err.Error())
	}
	c.life, c.state, c.started = life, runtimeapi.ContainerState_CONTAINER_RUNNING, nowNanos()
	r.sendEvent(c.sandbox, id, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	r.beginLife(c)
	return nil
}

// StopContainer asks a container to end, kills it after timeout seconds, and returns when it has ended.
func (c *Client) StopContainer(ctx context.Context, id string, timeout int64) error {
	return c.runAction(ctx, "StopContainer", id, func() error {
		found, err := c.runtime.askToEnd(id)
		if err != nil || found == nil {
			return err
		}
		return c.runtime.awaitEnd(ctx, found, time.Duration(timeout)*time.Second)
	})
}

// askToEnd returns the container if it is still running.
func (r *Runtime) askToEnd(id string) (*container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[id]
	if c == nil {
		return nil, notFound("container", id)
	}
	if c.state == runtimeapi.ContainerState_CONTAINER_CREATED || c.state == runtimeapi.ContainerState_CONTAINER_EXITED {
		return nil, nil
	}
	return c, nil
}

// awaitEnd sends the signal to end, unless the timeout is zero, and then SIGKILL.
func (r *Runtime) awaitEnd(ctx context.Context, c *container, timeout time.Duration) error {
	r.mu.Lock()
	if timeout > 0 && !c.stopping {
		c.stopping = true
		if !c.life.IgnoresStop {
			r.endIn(c, c.life.Stops, exit{code: c.life.stopCode()})
		}
	}
	restarted := r.restarted
	r.mu.Unlock()
	ends, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := awaitDone(ends, c.done, restarted)
	if err == nil || ends.Err() == nil || ctx.Err() != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endContainer(c, killed)
	return nil
}

func (l Life) stopCode() int32 {
	switch {
	case l.CleanStop:
		return 0
	case l.StopCode != 0:
		return l.StopCode
	}
	return 143
}

// RemoveContainer removes a container, and kills it first if it is running. A missing container is no error.
func (c *Client) RemoveContainer(ctx context.Context, id string) error {
	return c.runAction(ctx, "RemoveContainer", id, func() error {
		r := c.runtime
		r.mu.Lock()
		defer r.mu.Unlock()
		if found := r.containers[id]; found != nil {
			r.endContainer(found, killed)
			r.removeContainer(found)
		}
		return nil
	})
}

// removeContainer removes a container. The caller holds r.mu.
func (r *Runtime) removeContainer(c *container) {
	delete(r.containers, c.id)
	r.sendEvent(c.sandbox, c.id, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
}

// ListContainers returns the containers for the filter.
func (c *Client) ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	return runCall(ctx, c, "ListContainers", "", func() ([]*runtimeapi.Container, error) {
		r := c.runtime
		r.mu.Lock()
		defer r.mu.Unlock()
		var list []*runtimeapi.Container
		for _, c := range r.containers {
			if !strings.HasPrefix(c.id, filter.GetId()) || !strings.HasPrefix(c.sandbox.id, filter.GetPodSandboxId()) ||
				!matchesLabels(c.config.GetLabels(), filter.GetLabelSelector()) || filter.GetState() != nil && filter.GetState().GetState() != c.state {
				continue
			}
			s := c.statusMessage()
			list = append(list, &runtimeapi.Container{
				Id: c.id, PodSandboxId: c.sandbox.id, Metadata: s.Metadata, Image: s.Image, ImageRef: s.ImageRef, ImageId: s.ImageId,
				State: c.state, CreatedAt: c.created, Labels: s.Labels, Annotations: s.Annotations,
			})
		}
		slices.SortFunc(list, func(a, b *runtimeapi.Container) int { return strings.Compare(a.Id, b.Id) })
		return list, nil
	})
}

// ContainerStatus returns the state of a container.
func (c *Client) ContainerStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.ContainerStatusResponse, error) {
	return runCall(ctx, c, "ContainerStatus", id, func() (*runtimeapi.ContainerStatusResponse, error) {
		r := c.runtime
		r.mu.Lock()
		defer r.mu.Unlock()
		found := r.containers[id]
		if found == nil {
			return nil, notFound("container", id)
		}
		answer := &runtimeapi.ContainerStatusResponse{Status: found.statusMessage()}
		if verbose {
			answer.Info = map[string]string{"info": `{"sandboxID":"` + found.sandbox.id + `"}`}
		}
		return answer, nil
	})
}

func (c *container) statusMessage() *runtimeapi.ContainerStatus {
	config := cloneMessage(c.config)
	return &runtimeapi.ContainerStatus{
		Id: c.id, Metadata: config.GetMetadata(), State: c.state, CreatedAt: c.created, StartedAt: c.started, FinishedAt: c.finished,
		ExitCode: c.exit.code, Reason: c.exit.reason, Message: c.exit.message,
		Image: &runtimeapi.ImageSpec{Image: c.image.imageName(), UserSpecifiedImage: config.GetImage().GetUserSpecifiedImage()}, ImageRef: c.image.digestRef(), ImageId: c.image.id,
		Labels: config.GetLabels(), Annotations: config.GetAnnotations(), Mounts: config.GetMounts(), LogPath: c.logPath(),
		Resources: &runtimeapi.ContainerResources{Linux: cloneMessage(c.resources)}, User: c.userMessage(), StopSignal: config.GetStopSignal(),
	}
}

// userMessage returns the user of the container: from its configuration, or else from its image.
func (c *container) userMessage() *runtimeapi.ContainerUser {
	context := c.config.GetLinux().GetSecurityContext()
	user := &runtimeapi.LinuxContainerUser{SupplementalGroups: slices.Clone(context.GetSupplementalGroups())}
	switch {
	case context.GetRunAsUser() != nil:
		user.Uid = context.GetRunAsUser().GetValue()
	case c.image.UID != nil:
		user.Uid = *c.image.UID
	}
	if context.GetRunAsGroup() != nil {
		user.Gid = context.GetRunAsGroup().GetValue()
	}
	return &runtimeapi.ContainerUser{Linux: user}
}

// statusesIn returns the statuses of the containers in a sandbox. The caller holds r.mu.
func (r *Runtime) statusesIn(s *sandbox) []*runtimeapi.ContainerStatus {
	var list []*runtimeapi.ContainerStatus
	for _, c := range r.containers {
		if c.sandbox == s {
			list = append(list, c.statusMessage())
		}
	}
	slices.SortFunc(list, func(a, b *runtimeapi.ContainerStatus) int { return strings.Compare(a.Id, b.Id) })
	return list
}

// UpdateContainerResources changes the resources of a container that has not ended.
func (c *Client) UpdateContainerResources(ctx context.Context, id string, resources *runtimeapi.ContainerResources) error {
	return c.runAction(ctx, "UpdateContainerResources", id, func() error {
		r := c.runtime
		r.mu.Lock()
		defer r.mu.Unlock()
		found := r.containers[id]
		switch {
		case found == nil:
			return notFound("container", id)
		case found.state == runtimeapi.ContainerState_CONTAINER_EXITED:
			return status.Errorf(codes.Unknown, "container is in %s state", found.state)
		}
		found.resources = mergeResources(found.resources, resources.GetLinux())
		return nil
	})
}

// mergeResources applies an update: zero fields of the update change nothing.
func mergeResources(old, update *runtimeapi.LinuxContainerResources) *runtimeapi.LinuxContainerResources {
	m := cloneMessage(old)
	if m == nil {
		return cloneMessage(update)
	}
	set := func(to *int64, v int64) {
		if v != 0 {
			*to = v
		}
	}
	set(&m.CpuPeriod, update.GetCpuPeriod())
	set(&m.CpuQuota, update.GetCpuQuota())
	set(&m.CpuShares, update.GetCpuShares())
	set(&m.MemoryLimitInBytes, update.GetMemoryLimitInBytes())
	set(&m.MemorySwapLimitInBytes, update.GetMemorySwapLimitInBytes())
	if update.GetCpusetCpus() != "" {
		m.CpusetCpus = update.GetCpusetCpus()
	}
	if update.GetCpusetMems() != "" {
		m.CpusetMems = update.GetCpusetMems()
	}
	return m
}
