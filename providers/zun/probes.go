// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// Lacking implements service.Prober: Zun does no probes.
func (d *driver) Lacking(_ *corev1.Pod, c *corev1.Container) service.Probes {
	return service.Probes{Startup: c.StartupProbe, Liveness: c.LivenessProbe, Readiness: c.ReadinessProbe}
}

// End implements service.Prober.
func (d *driver) End(ctx context.Context, of service.Target[instance], _ string) error {
	return d.halt(ctx, of.Pod, of.Instance)
}

// Restart implements service.Restarter: the container ends, and is started again as any that has ended.
func (d *driver) Restart(ctx context.Context, of service.Target[instance], _ string) error {
	return d.halt(ctx, of.Pod, of.Instance)
}
