// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podjob

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

var (
	_ cri.RuntimeService      = (*runtime)(nil)
	_ cri.ImageManagerService = images{}
)

// runtime has the containers of one pod, as child processes that end with this process.
type runtime struct {
	unsupported
	dir     string // a directory of this machine
	address string
	hidden  string     // the part of it that containers must not see
	store   imageStore // nil: containers are programs of the machine

	devices      *devices
	keepVariable func(name string) bool // see Config
	confine      bool                   // see Config
	writeDNS     bool                   // see Config
	started      func(string, int)      // see Config; may be nil

	mu         sync.Mutex
	sandboxes  map[string]*sandbox   // guarded by mu
	containers map[string]*container // guarded by mu
	listeners  map[chan *runtimeapi.ContainerEventResponse]bool
}

type sandbox struct {
	id      string
	config  *runtimeapi.PodSandboxConfig
	created time.Time
	stopped bool // guarded by runtime.mu
}

func newRuntime(dir, address string) *runtime {
	return &runtime{
		dir: dir, address: address, devices: &devices{}, sandboxes: map[string]*sandbox{}, containers: map[string]*container{},
		listeners: map[chan *runtimeapi.ContainerEventResponse]bool{},
	}
}

func newID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// Version returns the name and the version of this runtime.
func (r *runtime) Version(context.Context, string) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "podjob", RuntimeVersion: "1.0.0", RuntimeApiVersion: "v1"}, nil
}

// Status reports the runtime as ready.
func (r *runtime) Status(context.Context, bool) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{
		Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
			{Type: runtimeapi.RuntimeReady, Status: true}, {Type: runtimeapi.NetworkReady, Status: true},
		}},
		RuntimeHandlers: []*runtimeapi.RuntimeHandler{{Features: &runtimeapi.RuntimeHandlerFeatures{}}},
		Features:        &runtimeapi.RuntimeFeatures{},
	}, nil
}

// RunPodSandbox makes a sandbox, which is only a record.
func (r *runtime) RunPodSandbox(_ context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	if handler != "" {
		return "", status.Errorf(codes.InvalidArgument, "runtime handler %q: there is none in a job", handler)
	}
	if dir := config.GetLogDirectory(); dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", err
		}
	}
	if r.writeDNS {
		if err := os.WriteFile(r.resolvConf(), []byte(dnsText(config.GetDnsConfig())), 0o644); err != nil { //nolint:gosec // all users of containers read it
			return "", err
		}
	}
	s := &sandbox{id: newID(), config: config, created: time.Now()}
	r.mu.Lock()
	r.sandboxes[s.id] = s
	r.mu.Unlock()
	r.publish(s.id, s.id, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	return s.id, nil
}

// resolvConf is the path of the pod's DNS settings.
func (r *runtime) resolvConf() string { return filepath.Join(r.dir, "resolv.conf") }

// dnsText formats DNS settings for /etc/resolv.conf.
func dnsText(c *runtimeapi.DNSConfig) string {
	var text strings.Builder
	for _, server := range c.GetServers() {
		fmt.Fprintf(&text, "nameserver %s\n", server)
	}
	if len(c.GetSearches()) > 0 {
		fmt.Fprintf(&text, "search %s\n", strings.Join(c.GetSearches(), " "))
	}
	if len(c.GetOptions()) > 0 {
		fmt.Fprintf(&text, "options %s\n", strings.Join(c.GetOptions(), " "))
	}
	return text.String()
}

func (r *runtime) sandbox(id string) (*sandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sandboxes[id]; s != nil {
		return s, nil
	}
	return nil, status.Errorf(codes.NotFound, "sandbox %q not found", id)
}

// StopPodSandbox kills the processes in the sandbox.
func (r *runtime) StopPodSandbox(ctx context.Context, id string) error {
	s, err := r.sandbox(id)
	if err != nil {
		return nil //nolint:nilerr // what is not there does not run
	}
	for _, c := range r.containersOf(id) {
		if err := r.StopContainer(ctx, c.id, 0); err != nil {
			return err
		}
	}
	r.mu.Lock()
	s.stopped = true
	r.mu.Unlock()
	r.publish(id, id, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	return nil
}

// RemovePodSandbox removes a sandbox with its containers.
func (r *runtime) RemovePodSandbox(ctx context.Context, id string) error {
	if err := r.StopPodSandbox(ctx, id); err != nil {
		return err
	}
	for _, c := range r.containersOf(id) {
		if err := r.RemoveContainer(ctx, c.id); err != nil {
			return err
		}
	}
	r.mu.Lock()
	delete(r.sandboxes, id)
	r.mu.Unlock()
	r.publish(id, id, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
	return nil
}

func (r *runtime) sandboxState(s *sandbox) runtimeapi.PodSandboxState {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.stopped {
		return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	}
	return runtimeapi.PodSandboxState_SANDBOX_READY
}

// PodSandboxStatus returns the status of a sandbox.
func (r *runtime) PodSandboxStatus(_ context.Context, id string, _ bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	s, err := r.sandbox(id)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.PodSandboxStatusResponse{Status: r.sandboxStatus(s)}, nil
}

func (r *runtime) sandboxStatus(s *sandbox) *runtimeapi.PodSandboxStatus {
	return &runtimeapi.PodSandboxStatus{
		Id: s.id, Metadata: s.config.GetMetadata(), State: r.sandboxState(s), CreatedAt: s.created.UnixNano(),
		Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(),
		Network: &runtimeapi.PodSandboxNetworkStatus{Ip: r.address},
		Linux:   &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: s.config.GetLinux().GetSecurityContext().GetNamespaceOptions()}},
	}
}

// ListPodSandbox lists the sandboxes.
func (r *runtime) ListPodSandbox(_ context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	r.mu.Lock()
	var all []*sandbox
	for _, s := range r.sandboxes {
		all = append(all, s)
	}
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b *sandbox) int { return a.created.Compare(b.created) })
	var list []*runtimeapi.PodSandbox
	for _, s := range all {
		state := r.sandboxState(s)
		if filter.GetId() != "" && filter.GetId() != s.id || filter.GetState() != nil && filter.GetState().GetState() != state || !matchLabels(s.config.GetLabels(), filter.GetLabelSelector()) {
			continue
		}
		list = append(list, &runtimeapi.PodSandbox{
			Id: s.id, Metadata: s.config.GetMetadata(), State: state, CreatedAt: s.created.UnixNano(),
			Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(),
		})
	}
	return list, nil
}

func matchLabels(labels, want map[string]string) bool {
	for k, v := range want {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// Close does nothing: containers end with the process.
func (r *runtime) Close(context.Context) error { return nil }

// GetContainerEvents sends the events of containers.
func (r *runtime) GetContainerEvents(ctx context.Context, out chan *runtimeapi.ContainerEventResponse, connected func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	queue := make(chan *runtimeapi.ContainerEventResponse, 256)
	r.mu.Lock()
	r.listeners[queue] = true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.listeners, queue)
		r.mu.Unlock()
	}()
	if connected != nil {
		connected(nil)
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-queue:
			select {
			case out <- e:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// publish sends an event. Readers without an open stream miss the event; they list containers instead.
func (r *runtime) publish(id, sandboxID string, kind runtimeapi.ContainerEventType) {
	event := &runtimeapi.ContainerEventResponse{ContainerId: id, ContainerEventType: kind, CreatedAt: time.Now().UnixNano()}
	if s, err := r.sandbox(sandboxID); err == nil {
		event.PodSandboxStatus = r.sandboxStatus(s)
		for _, c := range r.containersOf(sandboxID) {
			event.ContainersStatuses = append(event.ContainersStatuses, c.status())
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for queue := range r.listeners {
		select {
		case queue <- event:
		default:
		}
	}
}
