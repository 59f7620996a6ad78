// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// Attach implements service.Attacher: it shows what a container writes.
func (d *driver) Attach(ctx context.Context, to service.Target[*instance], attach api.AttachIO) error {
	return d.stream(ctx, to.Instance, podjob.Request{
		Op: podjob.OpAttach, Container: to.Container, TTY: attach.TTY(), Stdout: attach.Stdout() != nil, Stderr: attach.Stderr() != nil,
	}, podjob.Ends{In: attach.Stdin(), Out: attach.Stdout(), Err: attach.Stderr(), Resize: attach.Resize()})
}
