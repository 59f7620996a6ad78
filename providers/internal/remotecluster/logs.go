// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// GetContainerLogs returns the log of a container from the remote API server.
func (c *Cluster) GetContainerLogs(ctx context.Context, namespace, name, container string, o api.ContainerLogOpts) (io.ReadCloser, error) {
	remote, err := c.podOfContainer(ctx, namespace, name, container)
	if err != nil {
		return nil, err
	}
	log, err := c.client.CoreV1().Pods(remote.Namespace).GetLogs(remote.Name, logOptions(container, o)).Stream(ctx)
	if err != nil {
		return nil, classifyError(err)
	}
	return log, nil
}

func logOptions(container string, o api.ContainerLogOpts) *corev1.PodLogOptions {
	out := &corev1.PodLogOptions{Container: container, Follow: o.Follow, Previous: o.Previous, Timestamps: o.Timestamps}
	if o.Tail > 0 {
		out.TailLines = ptr.To(int64(o.Tail))
	}
	if o.LimitBytes > 0 {
		out.LimitBytes = ptr.To(int64(o.LimitBytes))
	}
	if o.SinceSeconds > 0 {
		out.SinceSeconds = ptr.To(int64(o.SinceSeconds))
	} else if !o.SinceTime.IsZero() {
		out.SinceTime = &metav1.Time{Time: o.SinceTime}
	}
	return out
}
