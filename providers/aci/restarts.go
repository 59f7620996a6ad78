// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// Lacking implements service.Prober.
func (*driver) Lacking(_ *corev1.Pod, c *corev1.Container) service.Probes { return lacking(c) }

// End implements service.Prober. A stopped group ends, and costs nothing any more.
func (d *driver) End(ctx context.Context, of service.Target[instance], _ string) error {
	name := value(of.Instance.group.Name)
	err := d.client.stop(ctx, name)
	if err == nil {
		d.groups.expect(name)
	}
	return err
}

// Restart implements service.Restarter. ACI restarts all containers of a group, so such probes are refused for a
// pod with several containers.
func (d *driver) Restart(ctx context.Context, of service.Target[instance], _ string) error {
	name := value(of.Instance.group.Name)
	err := d.client.restart(ctx, name)
	if err == nil {
		d.groups.expect(name)
	}
	return err
}
