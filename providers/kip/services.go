// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/cell"
)

// servicesAgain is the wait of a pod while the node does not know the Services of the cluster.
const servicesAgain = 2 * time.Second

// proxyName is the label of Services that another proxy serves.
const proxyName = "service.kubernetes.io/service-proxy-name"

// refreshServices returns the Services of the cluster, or nil while the node does not know them. It notifies the followers of machines of a change.
func (d *driver) refreshServices(ctx context.Context) *clusterServices {
	d.mu.Lock()
	lister, last, known := d.slices, d.services, ""
	if last != nil {
		known = last.of
	}
	d.mu.Unlock()
	if !d.config.Services || lister == nil || d.in.Services == nil {
		return nil
	}
	services, err := d.in.Services.List(labels.Everything())
	all, sliceErr := lister.List(labels.Everything())
	if err = cmp.Or(err, sliceErr); err != nil {
		log.G(ctx).WithError(err).Warn("The node cannot read the Services of the cluster")
		return last
	}
	slices.SortFunc(services, func(a, b *corev1.Service) int { return cmp.Compare(a.UID, b.UID) })
	slices.SortFunc(all, func(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.UID, b.UID) })
	var versions []byte
	for _, s := range services {
		versions = fmt.Append(versions, s.UID, s.ResourceVersion, ";")
	}
	for _, s := range all {
		versions = fmt.Append(versions, s.UID, s.ResourceVersion, ";")
	}
	if last != nil && known == string(versions) {
		return last
	}
	data := servicesOf(services, all, d.owner.Node)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.services != nil && reflect.DeepEqual(d.services.data, data) {
		d.services.of = string(versions) // the change does not affect machines
		return d.services
	}
	now := &clusterServices{of: string(versions), data: data}
	d.services = now
	for _, c := range d.cells {
		c.poke()
	}
	return now
}

// servicesOf returns the ports with cluster IPs of IPv4, and their endpoints as kube-proxy chooses them. It omits Services with a proxy of their own.
func servicesOf(services []*corev1.Service, all []*discoveryv1.EndpointSlice, node string) (s cell.Services) {
	type name struct{ namespace, service string }
	of := map[name][]*discoveryv1.EndpointSlice{}
	for _, slice := range all {
		if slice.AddressType == discoveryv1.AddressTypeIPv4 {
			n := name{slice.Namespace, slice.Labels[discoveryv1.LabelServiceName]}
			of[n] = append(of[n], slice)
		}
	}
	for _, service := range services {
		if _, other := service.Labels[proxyName]; other || service.Spec.Type == corev1.ServiceTypeExternalName {
			continue
		}
		local := ptr.Deref(service.Spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster) == corev1.ServiceInternalTrafficPolicyLocal
		for _, text := range service.Spec.ClusterIPs {
			ip, err := netip.ParseAddr(text)
			if err != nil || !ip.Is4() {
				continue // None, or IPv6
			}
			for _, port := range service.Spec.Ports {
				if port.Protocol != corev1.ProtocolTCP && port.Protocol != corev1.ProtocolUDP {
					continue
				}
				s.Ports = append(s.Ports, cell.ServicePort{
					Service: netip.AddrPortFrom(ip, uint16(port.Port)), Protocol: port.Protocol, //nolint:gosec // the API server checks the range
					Endpoints: endpointsOf(of[name{service.Namespace, service.Name}], port, local, node),
					Sticky:    service.Spec.SessionAffinity == corev1.ServiceAffinityClientIP,
				})
			}
		}
	}
	return s
}

// endpointsOf returns the ready endpoints of a port. If there are none, it returns the endpoints that are terminating but still serving.
func endpointsOf(all []*discoveryv1.EndpointSlice, port corev1.ServicePort, local bool, node string) []netip.AddrPort {
	var ready, ending []netip.AddrPort
	for _, slice := range all {
		i := slices.IndexFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool {
			return ptr.Deref(p.Name, "") == port.Name && ptr.Deref(p.Protocol, corev1.ProtocolTCP) == port.Protocol && p.Port != nil
		})
		if i < 0 {
			continue
		}
		for _, e := range slice.Endpoints {
			if local && ptr.Deref(e.NodeName, "") != node || len(e.Addresses) == 0 {
				continue
			}
			ip, err := netip.ParseAddr(e.Addresses[0]) // consumers must ignore further addresses
			if err != nil || !ip.Is4() {
				continue
			}
			at := netip.AddrPortFrom(ip, uint16(*slice.Ports[i].Port)) //nolint:gosec // the API server checks the range
			switch {
			case ptr.Deref(e.Conditions.Ready, true):
				ready = append(ready, at)
			case ptr.Deref(e.Conditions.Serving, false) && ptr.Deref(e.Conditions.Terminating, false):
				ending = append(ending, at)
			}
		}
	}
	if len(ready) == 0 {
		ready = ending
	}
	slices.SortFunc(ready, netip.AddrPort.Compare)
	return slices.Compact(ready) // an endpoint may be in two slices while it moves
}

// servicesRetry is the wait before the node sends the Services again to a machine that rejected them and has a running pod.
const servicesRetry = 10 * time.Second

// sendServices sends the current Services to a machine that does not have them yet. It returns false if the machine still does not have them. A
// machine that rejects them keeps its running pod. A pod that waits for its machine fails if the machine rejects them for StartWithin from then on. An
// outage of the network fails no pod.
func (d *driver) sendServices(ctx context.Context, c *cellState, a agent, give bool) (known bool, err error) {
	if !d.config.Services {
		return true, nil
	}
	d.mu.Lock()
	now, knows, wait := d.services, c.knows, !give && time.Since(c.asked) < servicesRetry
	if now == nil || now == knows || wait {
		d.mu.Unlock()
		return now != nil && now == knows, nil
	}
	c.asked = time.Now()
	d.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	err = a.SetServices(limited, now.data)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		c.knows, c.rejects, c.refused, c.asked = now, nil, time.Time{}, time.Time{}
		return true, nil
	}
	err = fmt.Errorf("send the Services of the cluster to machine %s, whose image may be too old for them: %w", c.id, err)
	if !give {
		if c.rejects != now && ctx.Err() == nil {
			log.G(ctx).WithError(err).Warn("The machine keeps the Services that it knows")
		}
		c.rejects, c.refused = now, time.Time{}
		if !errdefs.IsNotFound(err) { // a machine whose image is too old never takes them
			time.AfterFunc(servicesRetry, c.poke)
		}
		return false, nil
	}
	if !cell.IsAnswer(err) {
		return false, err
	}
	if c.refused.IsZero() {
		c.refused = time.Now()
	}
	if time.Since(c.refused) < d.config.StartWithin.Duration || c.doomed || c.reason != "" || !c.stopBy.IsZero() {
		return false, err
	}
	d.fail(ctx, c, reasonStart, fmt.Sprintf("the machine has not taken the Services of the cluster within %s: %s", d.config.StartWithin.Duration, strings.TrimSpace(err.Error())))
	d.leave(c)
	return false, nil
}

// expectsClusterDNS reports whether a pod resolves names of Services.
func expectsClusterDNS(pod *corev1.Pod) bool {
	return pod.Spec.DNSPolicy != corev1.DNSDefault && pod.Spec.DNSPolicy != corev1.DNSNone
}
