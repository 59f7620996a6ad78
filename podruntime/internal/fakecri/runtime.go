// SPDX-License-Identifier: Apache-2.0

package fakecri

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Config is the behaviour of a Runtime; the zero value is a modern runtime without streaming.
type Config struct {
	// IPs returns the addresses of the nth sandbox, counted from 1. Nil gives one IPv4 address each.
	IPs func(n int) []string
	// Exec answers commands in containers. Nil means exit code 0 without output.
	Exec func(ctx context.Context, c Container, command []string) Answer
	// StreamURL returns the URL of the server for an *ExecRequest, *AttachRequest or *PortForwardRequest. Nil means Unimplemented.
	StreamURL func(request any) (string, error)
	// Handlers are the runtime handlers in addition to "".
	Handlers []string
	// NoEvents makes GetContainerEvents Unimplemented, as in containerd 1.6.
	NoEvents bool
	// NoPodStats makes the statistics of sandboxes Unimplemented, as in containerd 1.6.
	NoPodStats bool
}

// Runtime is the runtime of a machine. It and its containers outlive its clients.
type Runtime struct {
	config Config

	mu         sync.Mutex
	numbered   int // number of identifiers so far
	addressed  int // number of sandbox addresses so far
	sandboxes  map[string]*sandbox
	containers map[string]*container
	images     map[string]*image // present on the machine, by identifier
	registry   map[string]*Image // the results of pulls, by normalised name
	scripts    []*script
	faults     map[string]*faults // by method
	calls      []*Call
	watchers   map[*watcher]bool
	conditions []*runtimeapi.RuntimeCondition
	restarted  chan struct{} // closed by Restart, and replaced
	madeBoxes  []*runtimeapi.PodSandboxConfig
	made       []*runtimeapi.ContainerConfig
}

var (
	_ cri.RuntimeService      = (*Client)(nil)
	_ cri.ImageManagerService = (*Client)(nil)
)

// New returns an empty runtime.
func New(config Config) *Runtime {
	return &Runtime{
		config:     config,
		sandboxes:  map[string]*sandbox{},
		containers: map[string]*container{},
		images:     map[string]*image{},
		registry:   map[string]*Image{},
		faults:     map[string]*faults{},
		watchers:   map[*watcher]bool{},
		restarted:  make(chan struct{}),
		conditions: []*runtimeapi.RuntimeCondition{
			{Type: runtimeapi.RuntimeReady, Status: true}, {Type: runtimeapi.NetworkReady, Status: true},
		},
	}
}

// Client is one connection to a Runtime: a cri.RuntimeService and a cri.ImageManagerService.
type Client struct {
	runtime *Runtime

	closed bool // guarded by runtime.mu
}

// Client returns a new connection.
func (r *Runtime) Client() *Client { return &Client{runtime: r} }

// Close ends the connection: later calls fail, and the runtime continues.
func (c *Client) Close(context.Context) error {
	c.runtime.mu.Lock()
	defer c.runtime.mu.Unlock()
	c.closed = true
	return nil
}

// Restart ends the runtime's daemon and starts it again. Waiting calls and streams of events end with Unavailable. Containers continue, and clients
// can use their connections again.
func (r *Runtime) Restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.restarted)
	r.restarted = make(chan struct{})
}

// Reboot ends all sandboxes and containers at once, as when the machine starts again. The runtime keeps them, as not ready and as exited.
func (r *Runtime) Reboot() {
	r.Restart()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		r.endContainer(c, exit{code: 255, reason: "Unknown"})
	}
	for _, s := range r.sandboxes {
		r.stopSandbox(s)
	}
}

// SetCondition changes a condition of the runtime: RuntimeReady or NetworkReady.
func (r *Runtime) SetCondition(kind string, ok bool, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, c := range r.conditions {
		if c.Type == kind {
			r.conditions[i] = &runtimeapi.RuntimeCondition{Type: kind, Status: ok, Reason: reason, Message: message}
		}
	}
}

// Version returns a name and versions.
func (c *Client) Version(ctx context.Context, _ string) (*runtimeapi.VersionResponse, error) {
	return runCall(ctx, c, "Version", "", func() (*runtimeapi.VersionResponse, error) {
		return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "fakecri", RuntimeVersion: "1.0.0", RuntimeApiVersion: "v1"}, nil
	})
}

// Status returns the conditions of the runtime.
func (c *Client) Status(ctx context.Context, _ bool) (*runtimeapi.StatusResponse, error) {
	return runCall(ctx, c, "Status", "", func() (*runtimeapi.StatusResponse, error) {
		r := c.runtime
		r.mu.Lock()
		defer r.mu.Unlock()
		answer := &runtimeapi.StatusResponse{
			Status:   &runtimeapi.RuntimeStatus{},
			Features: &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: true},
		}
		for _, condition := range r.conditions {
			answer.Status.Conditions = append(answer.Status.Conditions, cloneMessage(condition))
		}
		for _, name := range append([]string{""}, r.config.Handlers...) {
			answer.RuntimeHandlers = append(answer.RuntimeHandlers, &runtimeapi.RuntimeHandler{
				Name: name, Features: &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true},
			})
		}
		return answer, nil
	})
}

// RuntimeConfig returns the cgroup driver.
func (c *Client) RuntimeConfig(ctx context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	return runCall(ctx, c, "RuntimeConfig", "", func() (*runtimeapi.RuntimeConfigResponse, error) {
		return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS}}, nil
	})
}

// UpdateRuntimeConfig does nothing.
func (c *Client) UpdateRuntimeConfig(ctx context.Context, _ *runtimeapi.RuntimeConfig) error {
	return c.runAction(ctx, "UpdateRuntimeConfig", "", func() error { return nil })
}

// CheckpointContainer is not implemented.
func (c *Client) CheckpointContainer(ctx context.Context, _ *runtimeapi.CheckpointContainerRequest) error {
	return c.runAction(ctx, "CheckpointContainer", "", unimplementedError)
}

// CheckpointPod is not implemented.
func (c *Client) CheckpointPod(ctx context.Context, _ *runtimeapi.CheckpointPodRequest) error {
	return c.runAction(ctx, "CheckpointPod", "", unimplementedError)
}

// RestorePod is not implemented.
func (c *Client) RestorePod(ctx context.Context, _ *runtimeapi.RestorePodRequest) (*runtimeapi.RestorePodResponse, error) {
	return nil, c.runAction(ctx, "RestorePod", "", unimplementedError)
}

func unimplementedError() error {
	return status.Error(codes.Unimplemented, "not implemented by this runtime")
}

func notFound(kind, id string) error {
	return status.Errorf(codes.NotFound, "an error occurred when try to find %s %q: not found", kind, id)
}

// newID returns a new identifier that does not sort by creation. The caller holds r.mu.
func (r *Runtime) newID() string {
	r.numbered++
	sum := sha256.Sum256(fmt.Appendf(nil, "%d", r.numbered))
	return hex.EncodeToString(sum[:])
}

func (r *Runtime) nextIPs() []string {
	r.addressed++
	if r.config.IPs != nil {
		return r.config.IPs(r.addressed)
	}
	return []string{fmt.Sprintf("10.88.%d.%d", r.addressed/250, r.addressed%250+2)}
}

func nowNanos() int64 { return time.Now().UnixNano() }
