// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"io"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// Forward implements service.Forwarder by a connection to the address of the pod, if this machine has a route to
// its subnet. ACI has no such request.
func (d *driver) Forward(ctx context.Context, to service.Target[instance], port int32, stream io.ReadWriteCloser) error {
	if to.Pod.Status.PodIP == "" {
		_ = stream.Close()
		return errdefs.InvalidInput("it has no address: pods have one in a subnet, or a public one, once they run")
	}
	return service.ForwardByDial(ctx, d.dial, to.Pod, port, stream)
}
