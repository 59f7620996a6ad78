// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"io"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// Forward implements service.Forwarder: it connects with a port of the job's node.
func (d *driver) Forward(ctx context.Context, to service.Target[*instance], port int32, stream io.ReadWriteCloser) error {
	return d.stream(ctx, to.Instance, podjob.Request{Op: podjob.OpPort, Port: port, Stdin: true, Stdout: true}, podjob.Ends{In: stream, Out: stream})
}
