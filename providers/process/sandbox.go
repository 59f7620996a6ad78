// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/durable"
)

// sandboxRecord is the record of a sandbox on disk. The configuration is in another file.
type sandboxRecord struct {
	Created time.Time
	Stopped bool
	// Network is true if the sandbox may hold network resources that must be released.
	Network   bool     `json:",omitempty"`
	Addresses []string `json:",omitempty"`
}

func (r *sandboxRecord) checkRecord() error {
	if r.Created.IsZero() {
		return errors.New("it does not say when the sandbox was made")
	}
	return nil
}

// The files that containers get from their sandbox.
const (
	hostnameFile = "hostname"
	resolvFile   = "resolv.conf"
)

// RunPodSandbox creates a sandbox: its record, its network, and the shared files of its containers.
func (r *Runtime) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	if handler != "" {
		return "", status.Errorf(codes.InvalidArgument, "runtime handler %q: the process provider has none", handler)
	}
	if config.GetMetadata() == nil {
		return "", status.Error(codes.InvalidArgument, "the sandbox has no metadata")
	}
	if err := r.checkSandbox(config); err != nil {
		return "", err
	}
	s := &sandbox{id: newID(), config: config, created: time.Now(), held: r.ownNetwork(config)}
	s.dir = filepath.Join(r.config.StateDir, "sandboxes", s.id)
	if err := saveRecord(s.dir, new(s.newRecord()), config); err != nil {
		return "", errors.Join(fmt.Errorf("make the sandbox: %w", err), removeRecorded(s.dir))
	}
	err := durable.KeepRoom(filepath.Join(s.dir, recordFile)) // the removal of a pod makes room on a full disk
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, hostnameFile), []byte(config.GetHostname()+"\n"), 0o644) //nolint:gosec // every user of the container reads the file
	}
	if err == nil && config.GetDnsConfig() != nil {
		err = os.WriteFile(filepath.Join(s.dir, resolvFile), []byte(resolvConf(config.GetDnsConfig())), 0o644) //nolint:gosec // every user of the container reads the file
	}
	if dir := config.GetLogDirectory(); err == nil && dir != "" {
		err = os.MkdirAll(dir, 0o755) //nolint:gosec // the mode of a kubelet
	}
	if err == nil && s.held {
		err = r.joinNetwork(ctx, s)
	}
	if err == nil && r.oci.isGVisor() {
		if err = r.startGuest(ctx, s); err != nil && s.held {
			err = errors.Join(err, r.leaveNetwork(context.WithoutCancel(ctx), s))
		}
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("make the sandbox: %w", err), removeRecorded(s.dir))
	}
	r.mu.Lock()
	r.sandboxes[s.id] = s
	r.mu.Unlock()
	r.publishEvent(s.id, s.id, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	r.publishEvent(s.id, s.id, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	return s.id, nil
}

// podCgroup returns the pod cgroup of a container, or "" if there is none.
func (r *Runtime) podCgroup(c *container) string {
	s, err := r.findSandbox(c.Sandbox)
	if err != nil {
		return "" // the container cannot be started without a group
	}
	return s.config.GetLinux().GetCgroupParent()
}

// newRecord returns the record of a sandbox. The caller holds mu, or is the only user.
func (s *sandbox) newRecord() sandboxRecord {
	return sandboxRecord{Created: s.created, Stopped: s.stopped, Network: s.held, Addresses: s.addresses}
}

// checkSandbox refuses settings that the runtime would not enforce.
func (r *Runtime) checkSandbox(config *runtimeapi.PodSandboxConfig) error {
	if config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions().GetMode() == runtimeapi.NamespaceMode_POD &&
		config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions() != nil {
		return status.Error(codes.InvalidArgument, "hostUsers: false is not supported by the process provider")
	}
	if r.oci.isGVisor() {
		if err := refuseGuest(config); err != nil {
			return err
		}
	}
	if r.userNetwork() != nil {
		if err := refuseHostPorts(config); err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
	}
	if !r.isContained() && len(config.GetLinux().GetSysctls()) > 0 {
		return status.Errorf(codes.InvalidArgument, "sysctls need namespaces, and with isolation %s there are none", r.Isolation())
	}
	return nil
}

func resolvConf(c *runtimeapi.DNSConfig) string {
	var b strings.Builder
	if len(c.GetSearches()) > 0 {
		fmt.Fprintln(&b, "search", strings.Join(c.GetSearches(), " "))
	}
	for _, server := range c.GetServers() {
		fmt.Fprintln(&b, "nameserver", server)
	}
	if len(c.GetOptions()) > 0 {
		fmt.Fprintln(&b, "options", strings.Join(c.GetOptions(), " "))
	}
	return b.String()
}

// StopPodSandbox kills the processes of the sandbox, and releases its network.
func (r *Runtime) StopPodSandbox(ctx context.Context, id string) error {
	s, err := r.findSandbox(id)
	if status.Code(err) == codes.NotFound {
		return nil
	}
	r.mu.Lock()
	recorded, held := s.stopRecorded, s.held
	s.stopped = true
	r.mu.Unlock()
	for _, c := range r.containersOf(id) {
		if err := r.StopContainer(ctx, c.id, 0); err != nil {
			return fmt.Errorf("stop container %s of the sandbox: %w", c.id, err)
		}
	}
	if s.guestKept() {
		if err := r.stopGuest(ctx, s); err != nil {
			return fmt.Errorf("stop the sandbox: %w", err)
		}
	}
	if held {
		if err := r.leaveNetwork(ctx, s); err != nil {
			return fmt.Errorf("stop the sandbox: %w", err)
		}
	}
	if recorded && !held {
		return nil
	}
	r.mu.Lock()
	s.held = false
	record := s.newRecord()
	r.mu.Unlock()
	if err := durable.WriteLastJSON(filepath.Join(s.dir, recordFile), record); err != nil {
		return fmt.Errorf("stop the sandbox: %w", err)
	}
	r.mu.Lock()
	s.stopRecorded = true
	r.mu.Unlock()
	if recorded {
		return nil
	}
	r.publishEvent(id, id, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	return nil
}

// RemovePodSandbox removes the sandbox with its containers.
func (r *Runtime) RemovePodSandbox(ctx context.Context, id string) error {
	if _, err := r.findSandbox(id); err != nil {
		return nil //nolint:nilerr // removing a missing sandbox is no error
	}
	if err := r.StopPodSandbox(ctx, id); err != nil {
		return err
	}
	for _, c := range r.containersOf(id) {
		if err := r.RemoveContainer(ctx, c.id); err != nil {
			return err
		}
	}
	if err := removeRecorded(filepath.Join(r.config.StateDir, "sandboxes", id)); err != nil {
		return fmt.Errorf("remove the sandbox: %w", err)
	}
	r.mu.Lock()
	delete(r.sandboxes, id)
	r.mu.Unlock()
	r.publishEvent(id, id, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
	return nil
}

// PodSandboxStatus returns the status of a sandbox, with its address.
func (r *Runtime) PodSandboxStatus(_ context.Context, id string, _ bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	s, err := r.findSandbox(id)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.PodSandboxStatusResponse{Status: r.sandboxStatus(s)}, nil
}

func (r *Runtime) sandboxStatus(s *sandbox) *runtimeapi.PodSandboxStatus {
	options := s.config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	return &runtimeapi.PodSandboxStatus{
		Id: s.id, Metadata: s.config.GetMetadata(), State: r.sandboxState(s), CreatedAt: s.created.UnixNano(),
		Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(),
		Network: r.networkStatus(s),
		Linux:   &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: options}},
	}
}

// sandboxStopped reports whether a sandbox has stopped or is stopping.
func (r *Runtime) sandboxStopped(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sandboxes[id]
	return s != nil && s.stopped
}

func (r *Runtime) sandboxState(s *sandbox) runtimeapi.PodSandboxState {
	if r.sandboxStopped(s.id) || r.guestEnded(s) {
		return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	}
	return runtimeapi.PodSandboxState_SANDBOX_READY
}

// ListPodSandbox returns the sandboxes that match filter, newest first.
func (r *Runtime) ListPodSandbox(_ context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	r.mu.Lock()
	all := make([]*sandbox, 0, len(r.sandboxes))
	for _, s := range r.sandboxes {
		all = append(all, s)
	}
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b *sandbox) int { return b.created.Compare(a.created) })
	var list []*runtimeapi.PodSandbox
	for _, s := range all {
		state := r.sandboxState(s)
		if (filter.GetId() != "" && filter.GetId() != s.id) ||
			(filter.GetState() != nil && filter.GetState().GetState() != state) ||
			!matchesLabels(s.config.GetLabels(), filter.GetLabelSelector()) {
			continue
		}
		list = append(list, &runtimeapi.PodSandbox{
			Id: s.id, Metadata: s.config.GetMetadata(), State: state, CreatedAt: s.created.UnixNano(),
			Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(),
		})
	}
	return list, nil
}

func matchesLabels(labels, selector map[string]string) bool {
	for k, v := range selector {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}
