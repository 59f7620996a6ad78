// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// lacking returns the probes of a container that ACI does not run. ACI supports liveness and readiness
// probes of the types exec and httpGet, the latter only without host.
func lacking(c *corev1.Container) service.Probes { return service.LackingProbes(c, ownProbe) }

// ownProbe reports whether ACI runs such a probe.
func ownProbe(p *corev1.Probe) bool {
	g := p.HTTPGet
	return p.Exec != nil || g != nil && g.Host == "" && !slices.ContainsFunc(g.HTTPHeaders, func(h corev1.HTTPHeader) bool { return strings.EqualFold(h.Name, "Host") })
}

// checkProbes refuses probes that neither ACI nor this process can run.
func (n Network) checkProbes(pod *corev1.Pod, c *corev1.Container, at *field.Path) error {
	lacks := lacking(c)
	return podspec.Probes(c, at, func(p *corev1.Probe, at *field.Path) error {
		switch {
		case p.TerminationGracePeriodSeconds != nil:
			return errdefs.InvalidInputf("%s: a probe of ACI has no field for it", at.Child("terminationGracePeriodSeconds"))
		case !lacks.Has(p):
			return nil
		case p != c.ReadinessProbe && len(pod.Spec.Containers) > 1 && pod.Spec.RestartPolicy != corev1.RestartPolicyNever:
			return errdefs.InvalidInputf("%s: this node does it, and ACI restarts the containers of a group all together: use livenessProbe by command or HTTP without startupProbe, or one container", at)
		}
		return n.checkAddress(pod, c, p, at)
	})
}

// checkAddress refuses a probe of an address that this process does not reach.
func (n Network) checkAddress(pod *corev1.Pod, c *corev1.Container, p *corev1.Probe, at *field.Path) error {
	port, at, err := podspec.ProbePort(p, c, at)
	switch {
	case err != nil || port == 0:
		return err
	case n.Reachable != nil && !*n.Reachable:
		return errdefs.InvalidInputf("%s: this node does it, and does not reach pods, as network.reachable of its configuration says: use exec", at)
	case n.Subnet != "":
		return nil
	case !n.isPublic():
		return errdefs.InvalidInputf("%s: this node does it, and its pods have no address: use exec, or configure network", at)
	}
	for i := range pod.Spec.Containers {
		if slices.ContainsFunc(pod.Spec.Containers[i].Ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == port && p.Protocol != corev1.ProtocolUDP }) {
			return nil
		}
	}
	return errdefs.InvalidInputf("%s: this node does it at the public address, which has the ports that containers declare: declare %d in ports", at, port)
}
