// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"context"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// Exec implements service.Executor.
func (d *driver) Exec(ctx context.Context, in service.Target[instance], command []string, attach api.AttachIO) error {
	if attach.TTY() {
		return errdefs.InvalidInput("a command in a machine has no terminal: leave -t away")
	}
	return d.session(ctx, in, podjob.Request{Op: podjob.OpExec, Command: command}, attach)
}

// session runs a request in a container and connects its streams.
func (d *driver) session(ctx context.Context, in service.Target[instance], r podjob.Request, attach api.AttachIO) error {
	a, err := d.agentOf(in.Instance)
	if err != nil {
		return err
	}
	r.Container, r.TTY = in.Container, attach.TTY()
	r.Stdin, r.Stdout, r.Stderr = attach.Stdin() != nil, attach.Stdout() != nil, attach.Stderr() != nil
	return a.Stream(ctx, r, podjob.Ends{In: attach.Stdin(), Out: attach.Stdout(), Err: attach.Stderr(), Resize: attach.Resize()})
}
