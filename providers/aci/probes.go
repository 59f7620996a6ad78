// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"strings"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// probe maps a probe; nil stays nil.
func probe(p *corev1.Probe, c *corev1.Container, at *field.Path) (*aci.ContainerProbe, error) {
	if p == nil {
		return nil, nil
	}
	if p.TerminationGracePeriodSeconds != nil {
		return nil, errdefs.InvalidInputf("%s: a probe of ACI has no field for it", at.Child("terminationGracePeriodSeconds"))
	}
	out := &aci.ContainerProbe{
		InitialDelaySeconds: some(p.InitialDelaySeconds), PeriodSeconds: some(p.PeriodSeconds), TimeoutSeconds: some(p.TimeoutSeconds),
		SuccessThreshold: some(p.SuccessThreshold), FailureThreshold: some(p.FailureThreshold),
	}
	switch {
	case p.Exec != nil:
		out.Exec = &aci.ContainerExec{Command: pointers(p.Exec.Command)}
	case p.HTTPGet != nil:
		g := p.HTTPGet
		if g.Host != "" {
			return nil, errdefs.InvalidInputf("%s: a probe of ACI has no host", at.Child("httpGet", "host"))
		}
		port, err := portOf(g.Port, c, at.Child("httpGet", "port"))
		if err != nil {
			return nil, err
		}
		scheme := aci.SchemeHTTP
		if g.Scheme == corev1.URISchemeHTTPS {
			scheme = aci.SchemeHTTPS
		}
		out.HTTPGet = &aci.ContainerHTTPGet{Path: &g.Path, Port: &port, Scheme: &scheme}
		for _, h := range g.HTTPHeaders {
			if strings.EqualFold(h.Name, "Host") {
				return nil, errdefs.InvalidInputf("%s: a probe of ACI has no host", at.Child("httpGet", "httpHeaders"))
			}
			out.HTTPGet.HTTPHeaders = append(out.HTTPGet.HTTPHeaders, &aci.HTTPHeader{Name: &h.Name, Value: &h.Value})
		}
	case p.TCPSocket != nil:
		return nil, errdefs.InvalidInputf("%s: a probe of ACI runs a command, or asks by HTTP", at.Child("tcpSocket"))
	case p.GRPC != nil:
		return nil, errdefs.InvalidInputf("%s: a probe of ACI runs a command, or asks by HTTP", at.Child("grpc"))
	default:
		return nil, errdefs.InvalidInputf("%s: a probe of ACI runs a command, or asks by HTTP", at)
	}
	return out, nil
}

func some(n int32) *int32 {
	if n == 0 {
		return nil
	}
	return &n
}

// portOf is the number of a port that may be a name.
func portOf(p intstr.IntOrString, c *corev1.Container, at *field.Path) (int32, error) {
	if p.Type == intstr.Int {
		return p.IntVal, nil
	}
	for i := range c.Ports {
		if c.Ports[i].Name == p.StrVal {
			return c.Ports[i].ContainerPort, nil
		}
	}
	return 0, errdefs.InvalidInputf("%s: container %s has no port %q", at, c.Name, p.StrVal)
}
