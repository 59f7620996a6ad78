// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"io"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/stream"
)

// Streamer is implemented by a Config.Runtime that serves streams in this process. The methods Exec, Attach and PortForward of the Container Runtime
// Interface would have to start a server and return its URL; they are not called then.
//
// The methods return when the session has ended, or soon after the end of ctx. They do not close the streams of attach.
type Streamer interface {
	// StreamExec runs a command in a container. An exit code other than 0 is a k8s.io/utils/exec.ExitError.
	StreamExec(ctx context.Context, containerID string, command []string, attach api.AttachIO) error
	// StreamAttach connects to the main process of a container, and returns when the process has ended.
	StreamAttach(ctx context.Context, containerID string, attach api.AttachIO) error
	// StreamPort connects conn to a TCP port in the network of a sandbox.
	StreamPort(ctx context.Context, sandboxID string, port int32, conn io.ReadWriteCloser) error
}

var _ stream.Streamer = Streamer(nil)
