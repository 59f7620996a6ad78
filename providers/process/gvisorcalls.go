// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oci"
)

// callGuest runs a short runsc command, and returns its output.
func (r *Runtime) callGuest(ctx context.Context, prepare func(dir string) oci.Call) ([]byte, error) {
	dir, err := os.MkdirTemp(r.oci.bundles, "c")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	return prepare(dir).Output(ctx)
}

// measureGuest asks gVisor for the resource usage of a container: the host sees only the usage of the sandbox.
func (r *Runtime) measureGuest(ctx context.Context, c *container) (usage, error) {
	said, err := r.callGuest(ctx, func(dir string) oci.Call { return c.Spec.OCI.Stats(dir, c.Spec.OCI.ID) })
	if err != nil {
		return usage{}, fmt.Errorf("measure container %s: %w", c.id, err)
	}
	cpu, memory, err := oci.ReadStats(said)
	return usage{cpuNanos: cpu, memory: memory, workingSet: memory, rss: memory}, err
}

// dialGuest connects to a port of the pod, like one of its own processes: the network is in the sandbox.
func (r *Runtime) dialGuest(ctx context.Context, s *sandbox, port int32) (net.Conn, error) {
	dir, err := os.MkdirTemp(r.oci.bundles, "c")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	// The command connects before it asks the sandbox, so the connection waits in the backlog of this listener.
	o := r.oci.guestOf(s.id, s)
	if err := o.Forward(dir, o.ID, socket, int(port)).Run(ctx); err != nil {
		return nil, err
	}
	return listener.Accept()
}
