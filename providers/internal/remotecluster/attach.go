// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// AttachToContainer connects to the main process of a container.
func (c *Cluster) AttachToContainer(ctx context.Context, namespace, name, container string, io api.AttachIO) error {
	return c.runSession(ctx, namespace, name, container, "attach", &corev1.PodAttachOptions{
		Container: container, Stdin: io.Stdin() != nil, Stdout: io.Stdout() != nil, Stderr: io.Stderr() != nil, TTY: io.TTY(),
	}, io)
}
