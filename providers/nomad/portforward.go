// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// Forward implements service.Forwarder. Nomad has no request for it.
func (d *driver) Forward(ctx context.Context, to service.Target[*instance], port int32, stream io.ReadWriteCloser) error {
	if to.Pod.Status.Phase != corev1.PodRunning {
		return errdefs.InvalidInput("the pod does not run")
	}
	return service.ForwardByDial(ctx, nil, to.Pod, port, stream)
}
