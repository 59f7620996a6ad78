// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/job"
)

// AttachToContainer shows what a container writes.
func (p *provider) AttachToContainer(ctx context.Context, namespace, name, container string, attach api.AttachIO) error {
	return p.stream(ctx, namespace, name, job.Request{
		Op: job.OpAttach, Container: container, TTY: attach.TTY(), Stdout: attach.Stdout() != nil, Stderr: attach.Stderr() != nil,
	}, ends{attach.Stdin(), attach.Stdout(), attach.Stderr(), attach.Resize()})
}
