// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// AttachToContainer fails: Nomad has no such request.
func (p *provider) AttachToContainer(ctx context.Context, namespace, name, _ string, _ api.AttachIO) error {
	if _, err := p.GetPod(ctx, namespace, name); err != nil {
		return err
	}
	return errdefs.InvalidInputf("pod %s/%s: Nomad has no attach: use exec or logs", namespace, name)
}
