// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

func testMapping(t *testing.T) mapping {
	t.Helper()
	conf := good()
	conf.Network = Network{VNet: "net", Subnet: "pods", ClusterDNS: "10.0.0.10"}
	conf.Annotations = []string{"virtual-kubelet.io/container-sku"}
	conf.Zones = []string{"1"}
	conf.LogAnalytics = LogAnalytics{WorkspaceID: "w", WorkspaceKey: config.Literal("key")}
	conf, err := conf.complete()
	if err != nil {
		t.Fatal(err)
	}
	return mapping{config: conf}
}

// whole returns a pod that uses everything that a group can have.
func whole() resolved {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "6f2d8e1c-0000-4000-8000-000000000001", Annotations: map[string]string{"virtual-kubelet.io/container-sku": "Dedicated"}},
		Spec: corev1.PodSpec{
			RestartPolicy:   corev1.RestartPolicyOnFailure,
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(1000)), RunAsNonRoot: new(true)},
			DNSConfig:       &corev1.PodDNSConfig{Searches: []string{"example.com"}, Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: new("2")}, {Name: "debug"}}},
			InitContainers: []corev1.Container{{
				Name: "init", Image: "busybox", Command: []string{"sh", "-c"}, Args: []string{"echo 'a b'"}, VolumeMounts: []corev1.VolumeMount{{Name: "work", MountPath: "/work"}},
			}},
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example/team/nginx:1", Command: []string{"nginx"}, Args: []string{"-g", "daemon off;"},
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 80}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP}},
				Env:   []corev1.EnvVar{{Name: "COLOR", Value: "green"}, {Name: "EMPTY"}, {Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "p"}}}},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("251m"), corev1.ResourceMemory: resource.MustParse("512Mi")},
					Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")},
				},
				LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
					Path: "/live", Port: intstr.FromString("http"), HTTPHeaders: []corev1.HTTPHeader{{Name: "X", Value: "y"}},
				}}, PeriodSeconds: 5, FailureThreshold: 2},
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}, InitialDelaySeconds: 1},
				SecurityContext: &corev1.SecurityContext{
					RunAsGroup: new(int64(2000)), AllowPrivilegeEscalation: new(false),
					Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_BIND_SERVICE"}, Drop: []corev1.Capability{"ALL"}},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/config", ReadOnly: true}, {Name: "share", MountPath: "/share"}},
			}},
			Volumes: []corev1.Volume{
				{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{DefaultMode: new(int32(0o644))}}},
				{Name: "absent", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}},
				{Name: "share", VolumeSource: corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "account", ShareName: "share-1", ReadOnly: true}}},
			},
		},
	}
	return resolve(pod)
}

func resolve(pod *corev1.Pod) resolved {
	r := resolved{
		Inputs: &service.Inputs{
			Pod: pod, Tags: identity.Owner{Cluster: "home-1", Node: "aci"}.Tags(identity.Of(pod)),
			Containers: map[string]*corev1.Container{}, Files: map[string][]podspec.File{"config": {{Path: "color", Data: []byte("green")}}},
			Logins: []node.RegistryCredential{{Registry: "https://registry.example/team", Username: "u", Password: "p"}, {Registry: "registry.example", Username: "other"}},
		},
		shares: map[string]*corev1.Secret{"share": {Data: map[string][]byte{accountName: []byte("acc"), accountKey: []byte("a2V5")}}}, workspaceKey: "key",
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			full := list[i].DeepCopy()
			for n, e := range full.Env {
				if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
					full.Env[n] = corev1.EnvVar{Name: e.Name, Value: "hidden"}
				}
			}
			r.Containers[list[i].Name] = full
		}
	}
	return r
}

func TestAWholePod(t *testing.T) {
	r := whole()
	m := testMapping(t)
	if lacks := m.config.Capabilities().Check(r.Pod); len(lacks) > 0 {
		t.Errorf("what can be mapped is not declared: %s", capability.Message(lacks))
	}
	group, err := m.group(r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(group, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/whole.json"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, append(got, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || string(want) != string(got)+"\n" {
		t.Errorf("the group is not that of %s (%v):\n%s", golden, err, got)
	}
}

func TestWhatAGroupCannotHave(t *testing.T) {
	for path, change := range map[string]func(p *corev1.Pod, c *corev1.Container){
		"spec.containers[0].args[0]":    func(_ *corev1.Pod, c *corev1.Container) { c.Args = []string{"$(PASSWORD)"} },
		"spec.containers[0].command[1]": func(_ *corev1.Pod, c *corev1.Container) { c.Command = []string{"x", "a$(PASSWORD)"} },
		"spec.initContainers[0].resources.requests": func(p *corev1.Pod, _ *corev1.Container) {
			p.Spec.InitContainers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		},
		"spec.containers[0].workingDir":                 func(_ *corev1.Pod, c *corev1.Container) { c.WorkingDir = "/x" },
		"spec.containers[0].imagePullPolicy":            func(_ *corev1.Pod, c *corev1.Container) { c.ImagePullPolicy = corev1.PullNever },
		"spec.containers[0].ports[0].protocol":          func(_ *corev1.Pod, c *corev1.Container) { c.Ports[0].Protocol = corev1.ProtocolSCTP },
		"spec.containers[0].env[0]":                     func(_ *corev1.Pod, c *corev1.Container) { c.Env[0].ValueFrom = &corev1.EnvVarSource{} },
		"spec.containers[0].livenessProbe.httpGet.port": func(_ *corev1.Pod, c *corev1.Container) { c.LivenessProbe.HTTPGet.Port = intstr.FromString("x") },
		"spec.containers[0].livenessProbe.terminationGracePeriodSeconds": func(_ *corev1.Pod, c *corev1.Container) {
			c.LivenessProbe.TerminationGracePeriodSeconds = new(int64(1))
		},
		"spec.containers[0].livenessProbe.tcpSocket.port": func(_ *corev1.Pod, c *corev1.Container) {
			c.LivenessProbe.ProbeHandler = corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("x")}}
		},
		"spec.containers[0].securityContext.runAsNonRoot": func(_ *corev1.Pod, c *corev1.Container) { c.SecurityContext.RunAsUser = new(int64(0)) },
		"spec.containers[0].securityContext.runAsUser":    func(_ *corev1.Pod, c *corev1.Container) { c.SecurityContext.RunAsUser = new(int64(1 << 40)) },
		"spec.containers": func(_ *corev1.Pod, c *corev1.Container) {
			c.Resources.Requests[corev1.ResourceEphemeralStorage] = resource.MustParse("51G")
		},
		"spec.containers[0].resources.limits[nvidia.com/gpu]": func(_ *corev1.Pod, c *corev1.Container) {
			c.Resources.Limits["nvidia.com/gpu"] = resource.MustParse("1")
		},
		"spec.os":       func(p *corev1.Pod, _ *corev1.Container) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} },
		"spec.overhead": func(p *corev1.Pod, _ *corev1.Container) { p.Spec.Overhead = p.Spec.Containers[0].Resources.Limits },
		"spec.volumes[0].emptyDir.sizeLimit": func(p *corev1.Pod, _ *corev1.Container) {
			p.Spec.Volumes[0].EmptyDir.SizeLimit = resource.NewQuantity(1, resource.BinarySI)
		},
		"spec.volumes[1].configMap.defaultMode": func(p *corev1.Pod, _ *corev1.Container) { p.Spec.Volumes[1].ConfigMap.DefaultMode = new(int32(0o400)) },
		"spec.volumes[2].secret": func(p *corev1.Pod, _ *corev1.Container) {
			p.Spec.Volumes[2].Secret.Items = []corev1.KeyToPath{{Path: "a", Mode: new(int32(0o400))}}
		},
		"spec.volumes[3].azureFile.secretName":                   func(p *corev1.Pod, _ *corev1.Container) { p.Spec.Volumes[3].Name = "unknown" },
		"metadata.annotations[virtual-kubelet.io/container-sku]": func(p *corev1.Pod, _ *corev1.Container) { p.Annotations["virtual-kubelet.io/container-sku"] = "Big" },
		"metadata.annotations[virtual-kubelet.io/priority]":      func(p *corev1.Pod, _ *corev1.Container) { p.Annotations["virtual-kubelet.io/priority"] = "Spot" },
		"metadata.annotations[virtual-kubelet.io/gpu-type]":      func(p *corev1.Pod, _ *corev1.Container) { p.Annotations["virtual-kubelet.io/gpu-type"] = "K80" },
	} {
		t.Run(path, func(t *testing.T) {
			r := whole()
			change(r.Pod, &r.Pod.Spec.Containers[0])
			err := refuse(r.Pod)
			if err == nil {
				_, err = testMapping(t).group(resolve(r.Pod))
			}
			if !errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), path+":") {
				t.Errorf("got %v, want one that begins with %s", err, path)
			}
		})
	}
}

func TestSizesAreRoundedUp(t *testing.T) {
	for text, want := range map[string]float64{"1m": 0.01, "250m": 0.25, "251m": 0.26, "2": 2} {
		if got := *cpus(resource.MustParse(text)); got != want {
			t.Errorf("%s: got %v CPUs, want %v", text, got, want)
		}
	}
	for text, want := range map[string]float64{"1": 0.1, "1500M": 1.5, "512Mi": 0.6, "1Gi": 1.1} {
		if got := *gbs(resource.MustParse(text)); got != want {
			t.Errorf("%s: got %v GB, want %v", text, got, want)
		}
	}
}
