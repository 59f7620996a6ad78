// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"context"
	"io"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// Forward implements service.Forwarder: the agent connects to the port.
func (d *driver) Forward(ctx context.Context, to service.Target[instance], port int32, stream io.ReadWriteCloser) error {
	a, err := d.agentOf(to.Instance)
	if err != nil {
		return err
	}
	return a.Stream(ctx, podjob.Request{Op: podjob.OpPort, Port: port}, podjob.Ends{In: stream, Out: stream})
}
