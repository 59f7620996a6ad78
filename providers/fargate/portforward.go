// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// Forward implements service.Forwarder where this process reaches the address of a pod.
func (d *driver) Forward(ctx context.Context, to service.Target[types.Task], port int32, stream io.ReadWriteCloser) error {
	switch {
	case !d.config.reachable():
		return errdefs.InvalidInput("this node does not reach pods: its configuration says reachable: false")
	case to.Pod.Status.Phase != corev1.PodRunning:
		return errdefs.InvalidInput("the pod does not run")
	}
	return service.ForwardByDial(ctx, nil, to.Pod, port, stream)
}
