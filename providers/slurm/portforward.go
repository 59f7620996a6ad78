// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"io"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/pack"
)

// Forward implements service.Forwarder: it connects with a port of the job's node.
func (d *driver) Forward(ctx context.Context, to service.Target[*instance], port int32, stream io.ReadWriteCloser) error {
	return pack.Streams[*instance](d.stream).Forward(ctx, to, port, stream)
}
