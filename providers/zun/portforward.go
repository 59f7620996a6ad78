// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"context"
	"io"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// Forward implements service.Forwarder with a connection to the address of the pod, if this machine has a route to its network. Zun has no API for
// it.
func (d *driver) Forward(ctx context.Context, to service.Target[instance], port int32, stream io.ReadWriteCloser) error {
	return service.ForwardByDial(ctx, nil, to.Pod, port, stream)
}
