// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"io"

	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/job"
)

// PortForward connects with a port of the job's node.
func (p *provider) PortForward(ctx context.Context, namespace, name string, port int32, stream io.ReadWriteCloser) error {
	return p.stream(ctx, namespace, name, job.Request{Op: job.OpPort, Port: port, Stdin: true, Stdout: true}, ends{in: stream, out: stream})
}
