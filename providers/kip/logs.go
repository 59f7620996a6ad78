// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"context"
	"io"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// Logs implements service.LogReader. The agent has the logs while its machine exists.
func (d *driver) Logs(ctx context.Context, of service.Target[instance], opts api.ContainerLogOpts) (io.ReadCloser, error) {
	a, err := d.agentOf(of.Instance)
	if err != nil {
		return nil, err
	}
	return a.Logs(ctx, of.Container, opts)
}
