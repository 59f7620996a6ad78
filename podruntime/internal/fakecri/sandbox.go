// SPDX-License-Identifier: Apache-2.0

package fakecri

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// sandbox is the state of a sandbox, guarded by Runtime.mu.
type sandbox struct {
	id      string
	pid     int
	config  *runtimeapi.PodSandboxConfig
	handler string
	ready   bool
	created int64
	ips     []string
}

// RunPodSandbox creates a sandbox. It is ready at once.
func (c *Client) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	return runCall(ctx, c, "RunPodSandbox", podName(config), func() (string, error) { return c.runtime.runSandbox(config, handler) })
}

func (r *Runtime) runSandbox(config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	meta := config.GetMetadata()
	if meta.GetName() == "" || meta.GetNamespace() == "" || meta.GetUid() == "" {
		return "", status.Error(codes.InvalidArgument, "sandbox config must include name, namespace and uid")
	}
	if handler != "" && !slices.Contains(r.config.Handlers, handler) {
		return "", status.Errorf(codes.Unknown, "no runtime for %q is configured", handler)
	}
	for _, other := range r.sandboxes {
		if o := other.config.GetMetadata(); o.Name == meta.Name && o.Namespace == meta.Namespace && o.Uid == meta.Uid && o.Attempt == meta.Attempt {
			return "", status.Errorf(codes.Unknown, "failed to reserve sandbox name %q: name is reserved for %q", meta.Name, other.id)
		}
	}
	s := &sandbox{id: r.newID(), config: cloneMessage(config), handler: handler, ready: true, created: nowNanos()}
	s.pid = 10000 + r.numbered
	if namespaceOptions(config).GetNetwork() != runtimeapi.NamespaceMode_NODE {
		s.ips = r.nextIPs()
	}
	r.sandboxes[s.id] = s
	r.madeBoxes = append(r.madeBoxes, s.config)
	r.sendEvent(s, s.id, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	r.sendEvent(s, s.id, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	return s.id, nil
}

func namespaceOptions(config *runtimeapi.PodSandboxConfig) *runtimeapi.NamespaceOption {
	return config.GetLinux().GetSecurityContext().GetNamespaceOptions()
}

// StopPodSandbox kills the containers of a sandbox and removes its addresses. A missing sandbox is no error.
func (c *Client) StopPodSandbox(ctx context.Context, id string) error {
	return c.runAction(ctx, "StopPodSandbox", id, func() error {
		r := c.runtime
		r.mu.Lock()
		defer r.mu.Unlock()
		if s := r.sandboxes[id]; s != nil {
			r.stopSandbox(s)
		}
		return nil
	})
}

// stopSandbox stops a sandbox and its containers. The caller holds r.mu.
func (r *Runtime) stopSandbox(s *sandbox) {
	for _, c := range r.containers {
		if c.sandbox == s {
			r.endContainer(c, killed)
		}
	}
	if s.ready {
		s.ready, s.ips = false, nil
		r.sendEvent(s, s.id, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	}
}

// RemovePodSandbox removes a sandbox and its containers. A missing sandbox is no error.
func (c *Client) RemovePodSandbox(ctx context.Context, id string) error {
	return c.runAction(ctx, "RemovePodSandbox", id, func() error {
		r := c.runtime
		r.mu.Lock()
		defer r.mu.Unlock()
		s := r.sandboxes[id]
		if s == nil {
			return nil
		}
		r.stopSandbox(s)
		for _, c := range r.containers {
			if c.sandbox == s {
				r.removeContainer(c)
			}
		}
		delete(r.sandboxes, id)
		r.sendEvent(s, id, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
		return nil
	})
}

// PodSandboxStatus returns the state of a sandbox; verbose information has its process.
func (c *Client) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	return runCall(ctx, c, "PodSandboxStatus", id, func() (*runtimeapi.PodSandboxStatusResponse, error) {
		r := c.runtime
		r.mu.Lock()
		defer r.mu.Unlock()
		s := r.sandboxes[id]
		if s == nil {
			return nil, notFound("sandbox", id)
		}
		answer := &runtimeapi.PodSandboxStatusResponse{Status: s.statusMessage(), Timestamp: nowNanos()}
		if !r.config.NoEvents {
			answer.ContainersStatuses = r.statusesIn(s)
		}
		if verbose {
			answer.Info = map[string]string{"info": fmt.Sprintf(`{"pid":%d}`, s.pid)}
		}
		return answer, nil
	})
}

func (s *sandbox) sandboxState() runtimeapi.PodSandboxState {
	if s.ready {
		return runtimeapi.PodSandboxState_SANDBOX_READY
	}
	return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
}

func (s *sandbox) statusMessage() *runtimeapi.PodSandboxStatus {
	config := cloneMessage(s.config)
	network := &runtimeapi.PodSandboxNetworkStatus{}
	for i, ip := range s.ips {
		if i == 0 {
			network.Ip = ip
			continue
		}
		network.AdditionalIps = append(network.AdditionalIps, &runtimeapi.PodIP{Ip: ip})
	}
	return &runtimeapi.PodSandboxStatus{
		Id: s.id, Metadata: config.GetMetadata(), State: s.sandboxState(), CreatedAt: s.created, Network: network,
		Labels: config.GetLabels(), Annotations: config.GetAnnotations(), RuntimeHandler: s.handler,
		Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: namespaceOptions(config)}},
	}
}

// ListPodSandbox returns the sandboxes for the filter.
func (c *Client) ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	return runCall(ctx, c, "ListPodSandbox", "", func() ([]*runtimeapi.PodSandbox, error) {
		r := c.runtime
		r.mu.Lock()
		defer r.mu.Unlock()
		var list []*runtimeapi.PodSandbox
		for _, s := range r.sandboxes {
			if !strings.HasPrefix(s.id, filter.GetId()) || !matchesLabels(s.config.GetLabels(), filter.GetLabelSelector()) ||
				filter.GetState() != nil && filter.GetState().GetState() != s.sandboxState() {
				continue
			}
			config := cloneMessage(s.config)
			list = append(list, &runtimeapi.PodSandbox{
				Id: s.id, Metadata: config.GetMetadata(), State: s.sandboxState(), CreatedAt: s.created,
				Labels: config.GetLabels(), Annotations: config.GetAnnotations(), RuntimeHandler: s.handler,
			})
		}
		slices.SortFunc(list, func(a, b *runtimeapi.PodSandbox) int { return strings.Compare(a.Id, b.Id) })
		return list, nil
	})
}

func matchesLabels(labels, selector map[string]string) bool {
	for k, v := range selector {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// UpdatePodSandboxResources stores the resources of a sandbox in its configuration.
func (c *Client) UpdatePodSandboxResources(ctx context.Context, request *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	id := request.GetPodSandboxId()
	return runCall(ctx, c, "UpdatePodSandboxResources", id, func() (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
		r := c.runtime
		r.mu.Lock()
		defer r.mu.Unlock()
		s := r.sandboxes[id]
		if s == nil {
			return nil, notFound("sandbox", id)
		}
		s.config = cloneMessage(s.config)
		if s.config.Linux == nil {
			s.config.Linux = &runtimeapi.LinuxPodSandboxConfig{}
		}
		s.config.Linux.Resources, s.config.Linux.Overhead = cloneMessage(request.GetResources()), cloneMessage(request.GetOverhead())
		return &runtimeapi.UpdatePodSandboxResourcesResponse{}, nil
	})
}
