// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"context"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// AttachToContainer returns an error: CCI supports only exec and logs.
func (p *provider) AttachToContainer(ctx context.Context, namespace, name, _ string, _ api.AttachIO) error {
	return p.unsupportedError(ctx, namespace, name, "attach: use exec or logs")
}
