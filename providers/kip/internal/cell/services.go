// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// SetServices replaces the Services that the machine knows.
func (c *Client) SetServices(ctx context.Context, s Services) error {
	return c.callMachine(ctx, c.known, http.MethodPut, pathServices, s, nil)
}

// setServices replaces the Services of the machine.
func (a *Agent) setServices(s Services) error {
	if a.config.SetServices == nil {
		return errdefs.NotFound("the machine translates no addresses of Services")
	}
	for i, p := range s.Ports {
		if !p.Service.Addr().Is4() || p.Protocol != corev1.ProtocolTCP && p.Protocol != corev1.ProtocolUDP {
			return errdefs.InvalidInputf("ports[%d]: %s %s: want an IPv4 address, and TCP or UDP", i, p.Protocol, p.Service)
		}
		for j, e := range p.Endpoints {
			if !e.Addr().Is4() {
				return errdefs.InvalidInputf("ports[%d].endpoints[%d]: %s: want an IPv4 address", i, j, e)
			}
		}
	}
	return a.config.SetServices(s)
}
