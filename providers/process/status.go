// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// ContainerStatus returns the status of a container.
func (r *Runtime) ContainerStatus(_ context.Context, id string, _ bool) (*runtimeapi.ContainerStatusResponse, error) {
	c, err := r.findContainer(id)
	if err != nil {
		return nil, err
	}
	s, err := c.statusMessage(r)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.ContainerStatusResponse{Status: s}, nil
}

func (c *container) statusMessage(r *Runtime) (*runtimeapi.ContainerStatus, error) {
	state, err := c.readState()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	resources := c.config.GetLinux().GetResources()
	c.mu.Unlock()
	s := &runtimeapi.ContainerStatus{
		Id: c.id, Metadata: c.config.GetMetadata(), State: stateOf(state), CreatedAt: c.Created.UnixNano(),
		Image: c.imageSpec(), ImageRef: c.ImageRef, ImageId: c.ImageID,
		Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(), Mounts: c.config.GetMounts(),
		LogPath: c.Spec.LogPath, StopSignal: c.config.GetStopSignal(),
		User: &runtimeapi.ContainerUser{Linux: c.userMessage()},
	}
	if resources != nil && r.cgroups.isUsable() {
		s.Resources = &runtimeapi.ContainerResources{Linux: resources}
	}
	if state.Started() {
		s.StartedAt = max(state.StartedAt.UnixNano(), 0)
	}
	if state.Ended() {
		s.FinishedAt, s.ExitCode, s.Message = state.FinishedAt.UnixNano(), int32(state.ExitCode), state.Message
		s.Reason = state.Reason
		switch {
		case s.Reason != "":
		case s.ExitCode == 0:
			s.Reason = "Completed"
		default:
			s.Reason = "Error"
		}
	}
	return s, nil
}

// imageSpec returns the image for the pod's status: its name, not the ID from the container's configuration.
func (c *container) imageSpec() *runtimeapi.ImageSpec {
	if c.Image == "" {
		return c.config.GetImage()
	}
	return &runtimeapi.ImageSpec{Image: c.Image, UserSpecifiedImage: c.config.GetImage().GetUserSpecifiedImage()}
}

func (c *container) userMessage() *runtimeapi.LinuxContainerUser {
	u := &runtimeapi.LinuxContainerUser{Uid: int64(c.Spec.UID), Gid: int64(c.Spec.GID)}
	for _, g := range c.Spec.Groups {
		u.SupplementalGroups = append(u.SupplementalGroups, int64(g))
	}
	return u
}

func stateOf(s shim.State) runtimeapi.ContainerState {
	switch {
	case s.Ended():
		return runtimeapi.ContainerState_CONTAINER_EXITED
	case s.Started():
		return runtimeapi.ContainerState_CONTAINER_RUNNING
	default:
		return runtimeapi.ContainerState_CONTAINER_CREATED
	}
}

// ListContainers returns the containers that match filter, oldest first.
func (r *Runtime) ListContainers(_ context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	var list []*runtimeapi.Container
	for _, c := range r.containersOf(filter.GetPodSandboxId()) {
		if filter.GetId() != "" && filter.GetId() != c.id || !matchesLabels(c.config.GetLabels(), filter.GetLabelSelector()) {
			continue
		}
		state, err := c.readState()
		if err != nil {
			return nil, err
		}
		if filter.GetState() != nil && filter.GetState().GetState() != stateOf(state) {
			continue
		}
		list = append(list, &runtimeapi.Container{
			Id: c.id, PodSandboxId: c.Sandbox, Metadata: c.config.GetMetadata(), State: stateOf(state), CreatedAt: c.Created.UnixNano(),
			Image: c.config.GetImage(), ImageRef: c.ImageRef, ImageId: c.ImageID, Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
		})
	}
	return list, nil
}
