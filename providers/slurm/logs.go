// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"io"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/joblog"
	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/job"
)

// Logs implements service.LogReader: it reads the log of a container on the shared file system.
func (d *driver) Logs(ctx context.Context, of service.Target[*instance], opts api.ContainerLogOpts) (io.ReadCloser, error) {
	uid := of.Pod.UID
	return joblog.Open(ctx, filepath.Join(d.place.pod(uid), job.LogDir), of.Pod, of.Container, opts, func() (corev1.PodStatus, bool) {
		now, _, there := d.provider.Cache().Get(uid)
		if !there {
			return corev1.PodStatus{}, false
		}
		return now.Status, true
	})
}
