// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"context"
	"io"
)

// PortForward returns an error: CCI does not support it.
func (p *provider) PortForward(ctx context.Context, namespace, name string, _ int32, _ io.ReadWriteCloser) error {
	return p.unsupportedError(ctx, namespace, name, "port-forward: reach the pod by its address in the VPC")
}
