// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// lacking returns the probes of a container that ECI does not run. ECI has liveness and readiness probes, by
// commands and by requests to the container itself.
func lacking(c *corev1.Container) service.Probes { return service.LackingProbes(c, ownProbe) }

// ownProbe reports whether ECI runs such a probe.
func ownProbe(p *corev1.Probe) bool {
	switch {
	case p.SuccessThreshold > 1:
		return false
	case p.HTTPGet != nil:
		return p.HTTPGet.Host == "" && len(p.HTTPGet.HTTPHeaders) == 0
	case p.TCPSocket != nil:
		return p.TCPSocket.Host == ""
	}
	return p.Exec != nil
}

// probes maps the probes of a container that ECI runs, and refuses probes that neither ECI nor this process can
// run.
func (conf Config) probes(pod *corev1.Pod, c *corev1.Container, at *field.Path) (liveness, readiness *probe, err error) {
	lacks := lacking(c)
	err = podspec.Probes(c, at, func(p *corev1.Probe, at *field.Path) error {
		mayRestart := p != c.ReadinessProbe
		switch {
		case p.TerminationGracePeriodSeconds != nil:
			return errdefs.InvalidInputf("%s: a probe of ECI has no field for it", at.Child("terminationGracePeriodSeconds"))
		case !lacks.Has(p):
			out, err := probeOf(p, c, at)
			if p == c.LivenessProbe {
				liveness = out
			} else {
				readiness = out
			}
			return err
		case mayRestart && pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
			return errdefs.InvalidInputf("%s: this node does it, and ECI has no operation that ends a group and keeps it: use livenessProbe by command, HTTP or TCP without startupProbe, or restartPolicy OnFailure", at)
		case mayRestart && len(pod.Spec.Containers) > 1:
			return errdefs.InvalidInputf("%s: this node does it, and ECI restarts the containers of a group all together: use livenessProbe by command, HTTP or TCP without startupProbe, or one container", at)
		case p.Exec == nil && conf.Reachable != nil && !*conf.Reachable:
			return errdefs.InvalidInputf("%s: this node does it, and does not reach pods, as reachable of its configuration says: use exec", at)
		}
		_, _, err := podspec.ProbePort(p, c, at)
		return err
	})
	return liveness, readiness, err
}

// probeOf maps a probe that ECI runs.
func probeOf(p *corev1.Probe, c *corev1.Container, at *field.Path) (*probe, error) {
	out := &probe{
		InitialDelaySeconds: int64(p.InitialDelaySeconds), PeriodSeconds: int64(p.PeriodSeconds), TimeoutSeconds: int64(p.TimeoutSeconds),
		SuccessThreshold: int64(p.SuccessThreshold), FailureThreshold: int64(p.FailureThreshold),
	}
	var err error
	switch g := p.HTTPGet; {
	case p.Exec != nil:
		out.Exec.Command = p.Exec.Command
	case g != nil:
		out.HTTPGet = httpGet{Path: cmp.Or(g.Path, "/"), Scheme: cmp.Or(string(g.Scheme), "HTTP")}
		out.HTTPGet.Port, err = portOf(g.Port, c, at.Child("httpGet", "port"))
	default:
		out.TCPSocket.Port, err = portOf(p.TCPSocket.Port, c, at.Child("tcpSocket", "port"))
	}
	return out, err
}

// portOf returns the number of a port, which may be a name.
func portOf(p intstr.IntOrString, c *corev1.Container, at *field.Path) (int64, error) {
	port, err := podspec.Port(p, c, at)
	return int64(port), err
}

// hooks maps the hooks after the start and before the stop.
func (out *container) hooks(c *corev1.Container, at *field.Path) error {
	if c.Lifecycle == nil {
		return nil
	}
	var err error
	if h := c.Lifecycle.PostStart; h != nil {
		out.PostStart, err = hookOf(h, c, at.Child("postStart"))
	}
	if h := c.Lifecycle.PreStop; h != nil && err == nil {
		out.PreStop, err = hookOf(h, c, at.Child("preStop"))
	}
	return err
}

func hookOf(h *corev1.LifecycleHandler, c *corev1.Container, at *field.Path) (out hook, err error) {
	switch {
	case h.Exec != nil:
		out.Exec = h.Exec.Command
	case h.HTTPGet != nil:
		g := h.HTTPGet
		out.HTTPGetHost, out.HTTPGetPath, out.HTTPGetScheme = g.Host, cmp.Or(g.Path, "/"), cmp.Or(string(g.Scheme), "HTTP")
		for _, k := range g.HTTPHeaders {
			out.HTTPGetHTTPHeader = append(out.HTTPGetHTTPHeader, header{k.Name, k.Value})
		}
		out.HTTPGetPort, err = portOf(g.Port, c, at.Child("httpGet", "port"))
	case h.TCPSocket != nil:
		out.TCPSocketHost = h.TCPSocket.Host
		out.TCPSocketPort, err = portOf(h.TCPSocket.Port, c, at.Child("tcpSocket", "port"))
	default:
		return out, errdefs.InvalidInputf("%s: a hook of ECI runs a command, or asks by HTTP or TCP", at)
	}
	return out, err
}
