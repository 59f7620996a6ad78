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
	// joinNetwork creates the network of a sandbox and returns its addresses. After an error, the caller must
	// call leaveNetwork.
	joinNetwork(context.Context, *sandbox) ([]string, error)
	// leaveNetwork releases everything that joinNetwork acquired, also after an incomplete join. It is
	// idempotent.
	leaveNetwork(context.Context, *sandbox) error
	// isLost reports whether a sandbox with addresses has lost its network.
	isLost(*sandbox) bool
	// hostPorts reports whether the network supports host ports.
	hostPorts() bool
	// restoreLinks reconnects the sandboxes of an earlier daemon to the network, if necessary.
	restoreLinks(context.Context)
	// run maintains the network until ctx ends.
	run(context.Context)
	// close ends the daemon's part of the network; used is true if pods still use the network.
	close(ctx context.Context, used bool) error
}

// netnsFile is the name of the network namespace's file in the directory of its sandbox.
const netnsFile = "netns"

func (s *sandbox) netnsPath() string { return filepath.Join(s.dir, netnsFile) }

// openNetwork returns the configured pod network, or nil for the host network.
func (r *Runtime) openNetwork(ctx context.Context) (podNetwork, error) {
	switch {
	case r.config.PodNetwork == PodNetworkHost, r.config.PodNetwork == "" && !r.isContained():
		return nil, nil //nolint:nilnil // nil means the host network
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

// ownNetwork reports whether a pod with this configuration has its own network.
func (r *Runtime) ownNetwork(config *runtimeapi.PodSandboxConfig) bool {
	return r.network != nil && config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() != runtimeapi.NamespaceMode_NODE
}

// networkUsed reports whether any pod uses the network.
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

// lostNetwork reports whether the sandbox does not have the network that it should have: after a reboot, after a
// change of the configured pod network, or if an old version without pod networks created the sandbox.
func (r *Runtime) lostNetwork(s *sandbox) bool {
	switch {
	case len(s.addresses) == 0:
		return r.ownNetwork(s.config)
	case r.network == nil:
		return true
	}
	return r.network.isLost(s)
}

// joinNetwork gives the sandbox a network of its own, and releases all of it after an error.
func (r *Runtime) joinNetwork(ctx context.Context, s *sandbox) (err error) {
	if s.addresses, err = r.network.joinNetwork(ctx, s); err == nil {
		err = durable.WriteJSON(filepath.Join(s.dir, recordFile), s.newRecord())
	}
	if err != nil {
		// Do this even if the caller gave up: an address that is not released here is never released.
		return errors.Join(err, r.leaveNetwork(context.WithoutCancel(ctx), s))
	}
	return nil
}

// leaveNetwork releases the network of the sandbox.
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

// networkStatus returns the addresses of the sandbox, or the address of the machine.
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
