// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// IsSidecar reports whether an init container runs beside the containers that start after it.
func IsSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// RunAs is the user of a container. Nil means that the image decides.
type RunAs struct {
	User, Group *int64
	NonRoot     bool
}

// RunAsOf returns the user of a container: its own settings take precedence over the settings of its pod.
func RunAsOf(pod *corev1.Pod, c *corev1.Container) RunAs {
	own, of := c.SecurityContext, pod.Spec.SecurityContext
	if own == nil {
		own = &corev1.SecurityContext{}
	}
	if of == nil {
		of = &corev1.PodSecurityContext{}
	}
	return RunAs{cmp.Or(own.RunAsUser, of.RunAsUser), cmp.Or(own.RunAsGroup, of.RunAsGroup), isTrue(cmp.Or(own.RunAsNonRoot, of.RunAsNonRoot))}
}

// MayBeRoot reports whether a container must not run as root, and no user of the spec ensures that. A service that does not check the user
// of the image cannot guarantee this.
func (r RunAs) MayBeRoot() bool { return r.NonRoot && (r.User == nil || *r.User == 0) }

// SecretSource returns the path of the first part of a container's environment that comes from a Secret, or nil.
func SecretSource(c *corev1.Container, at *field.Path) *field.Path {
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.SecretKeyRef != nil {
			return at.Child("env").Index(i).Child("valueFrom", "secretKeyRef")
		}
	}
	for i := range c.EnvFrom {
		if c.EnvFrom[i].SecretRef != nil {
			return at.Child("envFrom").Index(i).Child("secretRef")
		}
	}
	return nil
}

// DNSOptions returns the options of a resolver in the format of resolv.conf: a name, or a name and a value with a colon between.
func DNSOptions(d *corev1.PodDNSConfig) (options []string) {
	for _, o := range d.Options {
		if o.Value != nil && *o.Value != "" {
			o.Name += ":" + *o.Value
		}
		options = append(options, o.Name)
	}
	return options
}

// Probes calls f with every probe of a container and its path, until f fails.
func Probes(c *corev1.Container, at *field.Path, f func(p *corev1.Probe, at *field.Path) error) error {
	for _, of := range []struct {
		name  string
		probe *corev1.Probe
	}{{"startupProbe", c.StartupProbe}, {"livenessProbe", c.LivenessProbe}, {"readinessProbe", c.ReadinessProbe}} {
		if of.probe == nil {
			continue
		}
		if err := f(of.probe, at.Child(of.name)); err != nil {
			return err
		}
	}
	return nil
}

// ProbePort returns the port that a probe connects to, and the path of the handler. The port is 0 for a command.
func ProbePort(p *corev1.Probe, c *corev1.Container, at *field.Path) (port int32, handler *field.Path, err error) {
	var asks intstr.IntOrString
	switch {
	case p.HTTPGet != nil:
		handler, asks = at.Child("httpGet"), p.HTTPGet.Port
	case p.TCPSocket != nil:
		handler, asks = at.Child("tcpSocket"), p.TCPSocket.Port
	case p.GRPC != nil:
		handler, asks = at.Child("grpc"), intstr.FromInt32(p.GRPC.Port)
	default:
		return 0, at, nil
	}
	port, err = Port(asks, c, handler.Child("port"))
	return port, handler, err
}

// CheckResources returns an error for requests and limits of resources that are not in known. why says which resources the service has.
func CheckResources(c *corev1.Container, at *field.Path, why string, known ...corev1.ResourceName) error {
	for _, list := range []struct {
		name string
		of   corev1.ResourceList
	}{{"requests", c.Resources.Requests}, {"limits", c.Resources.Limits}} {
		for name := range list.of {
			if !slices.Contains(known, name) {
				return errdefs.InvalidInputf("%s: %s", at.Child("resources", list.name).Key(string(name)), why)
			}
		}
	}
	return nil
}
