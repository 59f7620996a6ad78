// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"context"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// Attach implements service.Attacher.
func (d *driver) Attach(ctx context.Context, to service.Target[instance], attach api.AttachIO) error {
	return d.session(ctx, to, podjob.Request{Op: podjob.OpAttach}, attach)
}
