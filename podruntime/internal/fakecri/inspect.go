// SPDX-License-Identifier: Apache-2.0

package fakecri

import (
	"slices"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Container is a test's view of a container.
type Container struct {
	ID, SandboxID string
	// Pod and Name are the names of the pod and of the container; UID is the pod's.
	Pod, UID, Name string
	Attempt        uint32
	State          runtimeapi.ContainerState
	Config         *runtimeapi.ContainerConfig
	Resources      *runtimeapi.LinuxContainerResources
	Created        time.Time
	LogPath        string
	// Done is closed when the container has ended.
	Done <-chan struct{}
}

func (c *container) publicView() Container {
	return Container{
		ID: c.id, SandboxID: c.sandbox.id, Pod: c.sandbox.config.GetMetadata().GetName(), UID: c.sandbox.config.GetMetadata().GetUid(),
		Name: c.config.GetMetadata().GetName(), Attempt: c.config.GetMetadata().GetAttempt(), State: c.state,
		Config: cloneMessage(c.config), Resources: cloneMessage(c.resources), Created: time.Unix(0, c.created), LogPath: c.logPath(), Done: c.done,
	}
}

// Sandbox is a test's view of a sandbox.
type Sandbox struct {
	ID, Pod, UID string
	Ready        bool
	IPs          []string
	Handler      string
	Config       *runtimeapi.PodSandboxConfig
}

// Sandboxes returns the existing sandboxes, by pod and attempt.
func (r *Runtime) Sandboxes() []Sandbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []Sandbox
	for _, s := range r.sandboxes {
		list = append(list, Sandbox{
			ID: s.id, Pod: s.config.GetMetadata().GetName(), UID: s.config.GetMetadata().GetUid(), Ready: s.ready,
			IPs: slices.Clone(s.ips), Handler: s.handler, Config: cloneMessage(s.config),
		})
	}
	slices.SortFunc(list, func(a, b Sandbox) int {
		if n := strings.Compare(a.Pod+"/"+a.UID, b.Pod+"/"+b.UID); n != 0 {
			return n
		}
		return int(a.Config.GetMetadata().GetAttempt()) - int(b.Config.GetMetadata().GetAttempt())
	})
	return list
}

// Containers returns the existing containers in the order of their creation.
func (r *Runtime) Containers() []Container {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []Container
	for _, config := range r.made {
		for _, c := range r.containers {
			if c.config == config {
				list = append(list, c.publicView())
			}
		}
	}
	return list
}

// Find returns the latest container with a name in the pods with a name.
func (r *Runtime) Find(pod, name string) (Container, bool) {
	list := r.Containers()
	for _, c := range slices.Backward(list) {
		if c.Pod == pod && c.Name == name {
			return c, true
		}
	}
	return Container{}, false
}

// ContainerConfigs returns the config of each container ever created, in that order.
func (r *Runtime) ContainerConfigs() []*runtimeapi.ContainerConfig {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*runtimeapi.ContainerConfig
	for _, c := range r.made {
		list = append(list, cloneMessage(c))
	}
	return list
}

// SandboxConfigs returns the config of each sandbox ever created, in that order.
func (r *Runtime) SandboxConfigs() []*runtimeapi.PodSandboxConfig {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*runtimeapi.PodSandboxConfig
	for _, s := range r.madeBoxes {
		list = append(list, cloneMessage(s))
	}
	return list
}

// Exit ends a running container.
func (r *Runtime) Exit(id string, code int32, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.containers[id]; c != nil {
		r.endContainer(c, exit{code: code, reason: reason})
	}
}

// EndSandbox ends a sandbox and its containers, as when its process dies.
func (r *Runtime) EndSandbox(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sandboxes[id]; s != nil {
		r.stopSandbox(s)
	}
}

// Log adds lines to the log of a running container; stream is stdout or stderr.
func (r *Runtime) Log(id, stream string, lines ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.containers[id]; c != nil {
		r.writeLog(c, stream, lines...)
	}
}
