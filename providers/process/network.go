// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/durable"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/netns"
)

// podNetwork gives pods a network of their own.
type podNetwork interface {
	// joinNetwork makes the network of a sandbox and returns its addresses. After an error, leaveNetwork returns the rest.
	joinNetwork(context.Context, *sandbox) ([]string, error)
	// leaveNetwork returns the result of join, whole or in part, also if it was returned before.
	leaveNetwork(context.Context, *sandbox) error
	// isLost reports whether a sandbox with addresses has lost its network.
	isLost(*sandbox) bool
	// hostPorts reports whether ports of the machine can lead to pods.
	hostPorts() bool
	// restoreLinks remakes the network of the sandboxes of an earlier daemon, if that is necessary.
	restoreLinks(context.Context)
	// run works until ctx ends.
	run(context.Context)
	// close ends the daemon's part of the network; used says that pods continue to use it.
	close(ctx context.Context, used bool) error
}

// netnsFile is the network namespace in the directory of its sandbox.
const netnsFile = "netns"

func (s *sandbox) netnsPath() string { return filepath.Join(s.dir, netnsFile) }

// openNetwork returns the configured network, or nil for the machine's network.
func (r *Runtime) openNetwork(ctx context.Context) (podNetwork, error) {
	switch {
	case r.config.PodNetwork == PodNetworkHost, r.config.PodNetwork == "" && !r.isContained():
		return nil, nil //nolint:nilnil // the machine's network is no error
	case r.config.PodNetwork != "":
		return openCNI(ctx, r.config)
	}
	return r.openUserNetwork(ctx)
}

// userNetwork returns the network if it is the default one, else nil.
func (r *Runtime) userNetwork() *userNetwork {
	user, _ := r.network.(*userNetwork)
	return user
}

// ownNetwork reports whether pods of that configuration have a network of their own.
func (r *Runtime) ownNetwork(config *runtimeapi.PodSandboxConfig) bool {
	return r.network != nil && config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() != runtimeapi.NamespaceMode_NODE
}

// networkUsed reports whether pods go on with the network.
func (r *Runtime) networkUsed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sandboxes {
		if s.held {
			return true
		}
	}
	return len(r.leftovers) > 0
}

// lostNetwork reports whether the sandbox has a different network than it should have: after a reboot, after a
// change of the daemon's network for pods, or from a version without a network.
func (r *Runtime) lostNetwork(s *sandbox) bool {
	switch {
	case len(s.addresses) == 0:
		return r.ownNetwork(s.config)
	case r.network == nil:
		return true
	}
	return r.network.isLost(s)
}

// joinNetwork gives the sandbox a network of its own, and returns its parts after an error.
func (r *Runtime) joinNetwork(ctx context.Context, s *sandbox) (err error) {
	if s.addresses, err = r.network.joinNetwork(ctx, s); err == nil {
		err = durable.WriteJSON(filepath.Join(s.dir, recordFile), s.newRecord())
	}
	if err != nil {
		// Do this also if the caller gave up: an address that is not given back is lost for ever.
		return errors.Join(err, r.leaveNetwork(context.WithoutCancel(ctx), s))
	}
	return nil
}

// leaveNetwork returns the network of the sandbox.
func (r *Runtime) leaveNetwork(ctx context.Context, s *sandbox) error {
	var err error
	if r.network != nil {
		err = r.network.leaveNetwork(ctx, s)
	}
	if err != nil {
		return fmt.Errorf("give back the network of the sandbox: %w", err)
	}
	return netns.Remove(s.netnsPath())
}

// networkStatus has the addresses of the sandbox, or of the machine.
func (r *Runtime) networkStatus(s *sandbox) *runtimeapi.PodSandboxNetworkStatus {
	if len(s.addresses) == 0 {
		return &runtimeapi.PodSandboxNetworkStatus{Ip: r.address}
	}
	status := &runtimeapi.PodSandboxNetworkStatus{Ip: s.addresses[0]}
	for _, address := range s.addresses[1:] {
		status.AdditionalIps = append(status.AdditionalIps, &runtimeapi.PodIP{Ip: address})
	}
	return status
}
