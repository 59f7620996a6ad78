// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// TestContainerGoesBeforeItsPod checks that runAsUser, runAsGroup and runAsNonRoot of the container override those of the pod.
func TestContainerGoesBeforeItsPod(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](1), RunAsGroup: ptr.To[int64](2), RunAsNonRoot: ptr.To(true)}}}
	c := &corev1.Container{SecurityContext: &corev1.SecurityContext{RunAsUser: ptr.To[int64](0)}}
	if as := RunAsOf(pod, c); *as.User != 0 || *as.Group != 2 || !as.NonRoot || !as.MayBeRoot() {
		t.Errorf("got %+v", as)
	}
	c.SecurityContext.RunAsNonRoot = ptr.To(false)
	if as := RunAsOf(pod, c); as.NonRoot || as.MayBeRoot() {
		t.Errorf("the container may run as root: got %+v", as)
	}
	if as := RunAsOf(pod, &corev1.Container{}); *as.User != 1 || as.MayBeRoot() {
		t.Errorf("without settings of the container: got %+v", as)
	}
	if as := RunAsOf(&corev1.Pod{}, &corev1.Container{}); as != (RunAs{}) {
		t.Errorf("without settings: got %+v", as)
	}
}

// TestSecretSource checks that variables and whole Secrets are found, with their path, and nothing else.
func TestSecretSource(t *testing.T) {
	key := &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{}}
	for want, c := range map[string]*corev1.Container{
		"c.env[1].valueFrom.secretKeyRef": {Env: []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", ValueFrom: key}}},
		"c.envFrom[1].secretRef":          {EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{}}, {SecretRef: &corev1.SecretEnvSource{}}}},
		"":                                {Env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{}}}}},
	} {
		got := ""
		if at := SecretSource(c, field.NewPath("c")); at != nil {
			got = at.String()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestProbes checks the paths of the probes of a container, that an error ends the round, and their ports.
func TestProbes(t *testing.T) {
	c := &corev1.Container{
		Name: "c", Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 80}},
		StartupProbe:   &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{}}},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("web")}}},
	}
	var seen []string
	look := func(p *corev1.Probe, at *field.Path) error {
		port, handler, err := ProbePort(p, c, at)
		seen = append(seen, handler.String()+" "+strconv.Itoa(int(port)))
		return err
	}
	if err := Probes(c, field.NewPath("c"), look); err != nil || !slices.Equal(seen, []string{"c.startupProbe 0", "c.readinessProbe.httpGet 80"}) {
		t.Errorf("got %q, %v", seen, err)
	}
	c.ReadinessProbe.HTTPGet.Port.StrVal = "other"
	if err := Probes(c, field.NewPath("c"), look); !errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), "c.readinessProbe.httpGet.port: ") {
		t.Errorf("a port without a number: got %v", err)
	}
	one := errors.New("one")
	if err := Probes(c, nil, func(p *corev1.Probe, _ *field.Path) error {
		if p != c.StartupProbe {
			t.Error("the round goes on")
		}
		return one
	}); !errors.Is(err, one) {
		t.Errorf("got %v", err)
	}
}

// TestCheckResources checks that a resource is refused with its path.
func TestCheckResources(t *testing.T) {
	c := &corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"example.com/fpga": resource.MustParse("1")}}}
	if err := CheckResources(c, field.NewPath("c"), "has cpu", corev1.ResourceCPU); err == nil || err.Error() != "c.resources.limits[example.com/fpga]: has cpu" {
		t.Errorf("got %v", err)
	}
	if err := CheckResources(c, field.NewPath("c"), "has all", "example.com/fpga"); err != nil {
		t.Error(err)
	}
}

// TestDNSOptions checks that an option without a value is its name.
func TestDNSOptions(t *testing.T) {
	got := DNSOptions(&corev1.PodDNSConfig{Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: ptr.To("2")}, {Name: "edns0"}, {Name: "empty", Value: ptr.To("")}}})
	if !slices.Equal(got, []string{"ndots:2", "edns0", "empty"}) {
		t.Errorf("got %q", got)
	}
}
