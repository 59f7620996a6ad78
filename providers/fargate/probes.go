// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"strings"

	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// maxReason is the maximum length of the reason of a stop.
const maxReason = 1024

// Lacking implements service.Prober. ECS has a health check by command, and the provider uses it for the
// readiness probe. ECS does nothing to an unhealthy container of a single task. Lacking leaves out a probe of a
// port if this process does not reach pods: the probe would fail for a healthy pod.
func (d *driver) Lacking(_ *corev1.Pod, c *corev1.Container) service.Probes {
	out := service.Probes{Startup: c.StartupProbe, Liveness: c.LivenessProbe}
	if asksNetwork(c.ReadinessProbe) {
		out.Readiness = c.ReadinessProbe
	}
	if !d.config.reachable() {
		for _, probe := range []**corev1.Probe{&out.Startup, &out.Liveness, &out.Readiness} {
			if asksNetwork(*probe) {
				*probe = nil
			}
		}
	}
	return out
}

// End implements service.Prober. ECS cannot restart a container of a task.
func (d *driver) End(ctx context.Context, of service.Target[ecstypes.Task], reason string) error {
	return d.end(ctx, of.Instance, strings.ToValidUTF8(reason[:min(len(reason), maxReason)], ""))
}
