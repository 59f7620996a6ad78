// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"context"
	"net/http"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// Services are all Services of a cluster, for the network of a machine.
type Services struct {
	Ports []ServicePort `json:"ports"`
}

// ServicePort is a port of a Service.
type ServicePort struct {
	Service  netip.AddrPort  `json:"service"`  // the cluster IP and the port
	Protocol corev1.Protocol `json:"protocol"` // TCP or UDP
	// Endpoints are the addresses of pods. Without one, the machine refuses connections.
	Endpoints []netip.AddrPort `json:"endpoints,omitempty"`
	// Sticky means that all connections of the machine lead to one endpoint, as long as the endpoint exists.
	Sticky bool `json:"sticky,omitempty"`
}

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
