// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// Logs implements service.LogReader.
func (d *driver) Logs(ctx context.Context, of service.Target[instance], opts api.ContainerLogOpts) (io.ReadCloser, error) {
	return d.pods.Logs(ctx, of.Pod, of.Container, opts, func() *corev1.Pod {
		now, _, _ := d.kit.Cache().Get(of.Pod.UID)
		return now
	})
}
