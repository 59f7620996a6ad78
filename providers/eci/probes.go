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
// commands and by requests to the container itself. ECI has no startup probe, and nothing that makes other
// probes wait for one.
func lacking(c *corev1.Container) service.Probes {
	out := service.Probes{Startup: c.StartupProbe}
	if p := c.LivenessProbe; p != nil && (c.StartupProbe != nil || !ownProbe(p)) {
		out.Liveness = p
	}
	if p := c.ReadinessProbe; p != nil && !ownProbe(p) {
		out.Readiness = p
	}
	return out
}

// ownProbe reports whether ECI does such a probe.
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
	for _, p := range []struct {
		name         string
		probe, lacks *corev1.Probe
		out          **probe
	}{{"startupProbe", c.StartupProbe, lacks.Startup, nil}, {"livenessProbe", c.LivenessProbe, lacks.Liveness, &liveness}, {"readinessProbe", c.ReadinessProbe, lacks.Readiness, &readiness}} {
		switch at := at.Child(p.name); {
		case p.probe == nil:
		case p.probe.TerminationGracePeriodSeconds != nil:
			return nil, nil, errdefs.InvalidInputf("%s: a probe of ECI has no field for it", at.Child("terminationGracePeriodSeconds"))
		case p.lacks == nil:
			*p.out, err = probeOf(p.probe, c, at)
		case p.name != "readinessProbe" && pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
			return nil, nil, errdefs.InvalidInputf("%s: this node does it, and ECI has no operation that ends a group and keeps it: use livenessProbe by command, HTTP or TCP without startupProbe, or restartPolicy OnFailure", at)
		case p.name != "readinessProbe" && len(pod.Spec.Containers) > 1:
			return nil, nil, errdefs.InvalidInputf("%s: this node does it, and ECI restarts the containers of a group all together: use livenessProbe by command, HTTP or TCP without startupProbe, or one container", at)
		case p.lacks.Exec == nil && conf.Reachable != nil && !*conf.Reachable:
			return nil, nil, errdefs.InvalidInputf("%s: this node does it, and does not reach pods, as reachable of its configuration says: use exec", at)
		default:
			err = checkPort(p.lacks, c, at)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return liveness, readiness, nil
}

// checkPort refuses a probe of a port without a number.
func checkPort(p *corev1.Probe, c *corev1.Container, at *field.Path) (err error) {
	switch {
	case p.HTTPGet != nil:
		_, err = portOf(p.HTTPGet.Port, c, at.Child("httpGet", "port"))
	case p.TCPSocket != nil:
		_, err = portOf(p.TCPSocket.Port, c, at.Child("tcpSocket", "port"))
	}
	return err
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
	if h := c.Lifecycle.PostStart; h != nil {
		got, err := hookOf(h, c, at.Child("postStart"))
		if err != nil {
			return err
		}
		out.LifecyclePostStartHandlerExec = got.exec
		out.LifecyclePostStartHandlerHTTPGetHost, out.LifecyclePostStartHandlerHTTPGetHTTPHeader = got.httpHost, got.headers
		out.LifecyclePostStartHandlerHTTPGetPath, out.LifecyclePostStartHandlerHTTPGetPort = got.Path, got.Port
		out.LifecyclePostStartHandlerHTTPGetScheme = got.Scheme
		out.LifecyclePostStartHandlerTCPSocketHost, out.LifecyclePostStartHandlerTCPSocketPort = got.tcpHost, got.tcpPort
	}
	if h := c.Lifecycle.PreStop; h != nil {
		got, err := hookOf(h, c, at.Child("preStop"))
		if err != nil {
			return err
		}
		out.LifecyclePreStopHandlerExec = got.exec
		out.LifecyclePreStopHandlerHTTPGetHost, out.LifecyclePreStopHandlerHTTPGetHTTPHeader = got.httpHost, got.headers
		out.LifecyclePreStopHandlerHTTPGetPath, out.LifecyclePreStopHandlerHTTPGetPort = got.Path, got.Port
		out.LifecyclePreStopHandlerHTTPGetScheme = got.Scheme
		out.LifecyclePreStopHandlerTCPSocketHost, out.LifecyclePreStopHandlerTCPSocketPort = got.tcpHost, got.tcpPort
	}
	return nil
}

// hook is one of these hooks.
type hook struct {
	exec []string
	httpGet
	httpHost string
	headers  []header
	tcpHost  string
	tcpPort  int64
}

func hookOf(h *corev1.LifecycleHandler, c *corev1.Container, at *field.Path) (out hook, err error) {
	switch {
	case h.Exec != nil:
		out.exec = h.Exec.Command
	case h.HTTPGet != nil:
		g := h.HTTPGet
		out.httpGet = httpGet{Path: cmp.Or(g.Path, "/"), Scheme: cmp.Or(string(g.Scheme), "HTTP")}
		out.httpHost = g.Host
		for _, k := range g.HTTPHeaders {
			out.headers = append(out.headers, header{k.Name, k.Value})
		}
		out.Port, err = portOf(g.Port, c, at.Child("httpGet", "port"))
	case h.TCPSocket != nil:
		out.tcpHost = h.TCPSocket.Host
		out.tcpPort, err = portOf(h.TCPSocket.Port, c, at.Child("tcpSocket", "port"))
	default:
		return out, errdefs.InvalidInputf("%s: a hook of ECI runs a command, or asks by HTTP or TCP", at)
	}
	return out, err
}
