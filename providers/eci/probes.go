// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// probeOf maps a probe; nil stays nil.
func probeOf(p *corev1.Probe, c *corev1.Container, at *field.Path) (*probe, error) {
	if p == nil {
		return nil, nil
	}
	out := &probe{
		InitialDelaySeconds: int64(p.InitialDelaySeconds), PeriodSeconds: int64(p.PeriodSeconds), TimeoutSeconds: int64(p.TimeoutSeconds),
		SuccessThreshold: int64(p.SuccessThreshold), FailureThreshold: int64(p.FailureThreshold),
	}
	if p.SuccessThreshold > 1 {
		return nil, errdefs.InvalidInputf("%s: %d: a probe of ECI has 1", at.Child("successThreshold"), p.SuccessThreshold)
	}
	if p.TerminationGracePeriodSeconds != nil {
		return nil, errdefs.InvalidInputf("%s: a probe of ECI has no field for it", at.Child("terminationGracePeriodSeconds"))
	}
	var err error
	switch {
	case p.Exec != nil:
		out.Exec.Command = p.Exec.Command
	case p.HTTPGet != nil:
		g := p.HTTPGet
		if len(g.HTTPHeaders) > 0 || g.Host != "" {
			return nil, errdefs.InvalidInputf("%s: a probe of ECI has neither headers nor a host", at.Child("httpGet"))
		}
		out.HTTPGet = httpGet{Path: cmp.Or(g.Path, "/"), Scheme: cmp.Or(string(g.Scheme), "HTTP")}
		out.HTTPGet.Port, err = portOf(g.Port, c, at.Child("httpGet", "port"))
	case p.TCPSocket != nil:
		if p.TCPSocket.Host != "" {
			return nil, errdefs.InvalidInputf("%s: a probe of ECI has no host", at.Child("tcpSocket", "host"))
		}
		out.TCPSocket.Port, err = portOf(p.TCPSocket.Port, c, at.Child("tcpSocket", "port"))
	default:
		return nil, errdefs.InvalidInputf("%s: a probe of ECI runs a command, or asks by HTTP or TCP", at)
	}
	return out, err
}

// portOf is the number of a port that may be a name.
func portOf(p intstr.IntOrString, c *corev1.Container, at *field.Path) (int64, error) {
	port, err := podspec.Port(p, c, at)
	return int64(port), err
}

// hooks maps what runs after the start and before the stop.
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

// hook is one of both.
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
