// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"context"
	"io"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// Logs implements service.LogReader: the agent has them, as long as its machine is there.
func (d *driver) Logs(ctx context.Context, of service.Target[instance], opts api.ContainerLogOpts) (io.ReadCloser, error) {
	a, err := d.agentOf(of.Instance)
	if err != nil {
		return nil, err
	}
	return a.Logs(ctx, of.Container, opts)
}
