// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

var update = flag.Bool("update", false, "write the golden files")

const canary = "s3cr3t-c4n4ry"

func testConfig(t *testing.T, change func(*Config)) Config {
	t.Helper()
	c := Config{ClusterName: "home", Drivers: []string{DriverExec, DriverDocker, DriverRawExec}, DNS: []string{"10.0.0.10"}}
	if change != nil {
		change(&c)
	}
	c, err := c.complete()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// testPod returns a pod that uses every supported feature.
func testPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "6f2d8e1c-0000-4000-8000-000000000001"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyOnFailure, TerminationGracePeriodSeconds: ptr.To[int64](45), DNSPolicy: corev1.DNSClusterFirst,
			DNSConfig: &corev1.PodDNSConfig{Searches: []string{"shop.svc"}, Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: ptr.To("5")}}},
			Volumes: []corev1.Volume{
				{Name: "conf", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
				{Name: "keys", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}},
				{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
			InitContainers: []corev1.Container{
				{Name: "first", Image: "busybox", Command: []string{"first"}},
				{Name: "side", Image: "busybox", Command: []string{"side"}, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
				{Name: "second", Image: "busybox", Command: []string{"second", "arg"}},
			},
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example/web:1", Command: []string{"/bin/web", "${HOME} %{if} $$x"}, Args: []string{"--name=$(PLAIN)", "$$(A) $(UNKNOWN)"},
				WorkingDir: "/srv",
				Env: []corev1.EnvVar{
					{Name: "PLAIN", Value: "x"},
					{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "p"}}},
				},
				Ports:        []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}},
				VolumeMounts: []corev1.VolumeMount{{Name: "conf", MountPath: "/etc/web"}, {Name: "keys", MountPath: "/keys", ReadOnly: true}, {Name: "data", MountPath: "/data", SubPath: "web"}},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("100M")},
					Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi"), "nvidia.com/gpu": resource.MustParse("2")},
				},
			}, {
				Name: "other", Image: "busybox", Command: []string{"other"}, Env: []corev1.EnvVar{{Name: "TEXT", Value: "a ${b} $${c}"}},
			}},
		},
	}
}

func testInputs(pod *corev1.Pod) *service.Inputs {
	in := &service.Inputs{Pod: pod, Containers: map[string]*corev1.Container{}, Files: map[string][]podspec.File{
		"conf": {{Path: "a/b.conf", Data: []byte("{{ key \"x\" }} ${HOME}"), Mode: 0o644}},
		"keys": {{Path: "key", Data: []byte(canary), Mode: 0o400}},
	}}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			c := list[i].DeepCopy()
			for j := range c.Env {
				if c.Env[j].ValueFrom != nil {
					c.Env[j].Value, c.Env[j].ValueFrom = canary, nil
				}
			}
			for j := range c.Args {
				c.Args[j] = strings.ReplaceAll(c.Args[j], "$(PASSWORD)", canary)
			}
			in.Containers[c.Name] = c
		}
	}
	return in
}

// TestJob compares the job of a pod with a golden file, for each driver with file systems of its own.
func TestJob(t *testing.T) {
	for _, driver := range []string{DriverExec, DriverDocker} {
		t.Run(driver, func(t *testing.T) {
			pod := testPod()
			pod.Annotations = map[string]string{AnnotationDriver: driver, AnnotationDatacenters: "dc1, dc2"}
			r, err := mapping{config: testConfig(t, nil), owner: owner{"home", "node"}}.job(testInputs(pod), 2400)
			if err != nil {
				t.Fatal(err)
			}
			job, err := json.MarshalIndent(r.job, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(job), canary) || strings.Contains(string(job), base64.StdEncoding.EncodeToString([]byte(canary))) {
				t.Errorf("the job has the value of a secret:\n%s", job)
			}
			if len(r.variables) != 1 || !strings.HasSuffix(r.variables[0].Path, "/pod/main") || len(r.variables[0].Items) != 2 {
				t.Errorf("got the variables %v, want one of the container main with environment and file", r.variables)
			}
			golden := filepath.Join("testdata", driver+".json")
			if *update {
				if err := os.WriteFile(golden, append(job, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimSpace(string(want)), string(job)); diff != "" {
				t.Errorf("job (-want +got), -update writes it:\n%s", diff)
			}
		})
	}
}

// TestStorageIsTheDiskOfTheGroup checks that a storage request is passed on only if it exceeds the disk that
// each group has anyway. The request is rounded up to whole MiB.
func TestStorageIsTheDiskOfTheGroup(t *testing.T) {
	for asked, want := range map[string]int{"50Mi": 0, "300Mi": 0, "300.5Mi": 301, "2Gi": 2048} {
		pod := testPod()
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse(asked)}
		r, err := mapping{config: testConfig(t, nil), owner: owner{"home", "node"}}.job(testInputs(pod), 2400)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		if d := r.job.TaskGroups[0].EphemeralDisk; d != nil {
			got = *d.SizeMB
		}
		if got != want {
			t.Errorf("%s: got a disk of %d MB, want %d", asked, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		config func(*Config)
		want   string
	}{
		"driver that is not allowed": {func(p *corev1.Pod) { p.Annotations = map[string]string{AnnotationDriver: "raw_exec"} }, func(c *Config) { c.Drivers = []string{"docker"} }, `driver "raw_exec" is not one of this node's: docker`},
		"volume with raw_exec":       {func(p *corev1.Pod) { p.Annotations = map[string]string{AnnotationDriver: "raw_exec"} }, nil, "raw_exec has no file system"},
		"no command":                 {func(p *corev1.Pod) { p.Spec.Containers[1].Command = nil }, nil, "spec.containers[1].command: the driver exec has no images"},
		"unknown device":             {func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits["x.io/y"] = resource.MustParse("1") }, nil, "no device for x.io/y"},
		"mount path":                 {func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts[0].MountPath = "/a/../../b" }, nil, "absolute path"},
		"subPath with a colon":       {func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts[0].SubPath = "a:/etc" }, nil, "subPath"},
		"path that is replaced":      {func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts[0].MountPath = "/${NOMAD_SECRETS_DIR}" }, nil, "would replace"},
		"directory of Nomad":         {func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts[0].MountPath = "/local/" }, nil, "volumeMounts[0].mountPath: \"/local/\": Nomad has a directory of its own there"},
		"emptyDir at /secrets":       {func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts[2].MountPath = "/secrets" }, nil, "Nomad has a directory of its own there"},
		"subPathExpr":                {func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts[0].SubPathExpr = "x" }, nil, "subPathExpr"},
		"a user of the image":        {func(p *corev1.Pod) { p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true)} }, nil, "securityContext.runAsNonRoot: Nomad does not look"},
		"root": {func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](0)}
		}, nil, "securityContext.runAsNonRoot: Nomad does not look"},
		"user of exec":             {func(p *corev1.Pod) { p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](1)} }, nil, "driver exec has no such settings"},
		"address of the pod":       {func(p *corev1.Pod) { p.Annotations = map[string]string{"unresolved": "1"} }, nil, "tells the address of a pod after its start only"},
		"secret in a command":      {func(p *corev1.Pod) { p.Spec.Containers[0].Args[0] = "$(PASSWORD)" }, nil, "$(PASSWORD) may have the value of a Secret"},
		"name of a variable":       {func(p *corev1.Pod) { p.Spec.Containers[0].Env[0].Name = "a-b" }, nil, `"a-b"`},
		"address of the host port": {func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].HostIP = "10.1.1.1" }, nil, "hostIP"},
		"secret that is too large": {func(p *corev1.Pod) { p.Annotations = map[string]string{"large": "1"} }, nil, "a Variable of Nomad holds 65536"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := testPod()
			tt.change(pod)
			in := testInputs(pod)
			if pod.Annotations["large"] != "" {
				in.Files["keys"][0].Data = make([]byte, 60<<10)
			}
			if pod.Annotations["unresolved"] != "" {
				in.Containers["main"].Env[0].ValueFrom = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}
			}
			_, err := mapping{config: testConfig(t, tt.config), owner: owner{"home", "node"}}.job(in, 2400)
			if !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error of the kind invalid-input with %q", err, tt.want)
			}
		})
	}
}

// TestDatacenters checks that a pod can narrow the datacenters of the configuration, but cannot name others.
func TestDatacenters(t *testing.T) {
	for _, tt := range []struct {
		configured, asked string
		ok                bool
	}{
		{"dc1", "", true}, {"dc1", "dc1", true}, {"dc1", "dc2", false}, {"dc1", "dc1, dc2", false}, {"dc1", "*", false}, {"dc1", "dc*", false},
		{"*", "dc1,dc2", true}, {"*", "*", true}, {"*", "d*", false}, {"eu-*", "eu-1", true}, {"eu-*", "eu-*", true}, {"eu-*", "us-1", false},
		{"eu-*", "x-eu-1", false}, {"eu-*", "*", false}, {"*-a", "eu-a", true}, {"*-a", "eu-ab", false}, {"a*b*c", "a1b2c", true}, {"a*b*c", "a1c", false},
		{"d.1", "dc1", false}, {"us-1 eu-*", "eu-2", true},
	} {
		pod := testPod()
		pod.Annotations = map[string]string{AnnotationDatacenters: tt.asked}
		c := testConfig(t, func(c *Config) { c.Datacenters = strings.Fields(tt.configured) })
		if _, err := (mapping{config: c, owner: testOwner}).job(testInputs(pod), 2400); (err == nil) != tt.ok || err != nil && !errdefs.IsInvalidInput(err) {
			t.Errorf("of %q a pod asks for %q: got %v, want it to be taken: %t", tt.configured, tt.asked, err, tt.ok)
		}
	}
}

func TestIdentity(t *testing.T) {
	a := owner{"home", "node"}.jobID("6f2d8e1c-0000-4000-8000-000000000001")
	for _, other := range []string{
		owner{"home", "node"}.jobID("6f2d8e1c-0000-4000-8000-000000000002"), owner{"home2", "node"}.jobID("6f2d8e1c-0000-4000-8000-000000000001"),
		owner{"home", "node2"}.jobID("6f2d8e1c-0000-4000-8000-000000000001"),
	} {
		if a == other {
			t.Errorf("two pods have the job %s", a)
		}
	}
	if path := variablePath(owner{"home", "node"}.jobID(strings.Repeat("x", 36)), strings.Repeat("c", 63)); len(path) > 128 {
		t.Errorf("the path %s has %d characters, and Nomad takes 128", path, len(path))
	}
	if got := (owner{"home", "node"}).jobID(strings.Repeat("../", 30)); strings.Contains(got, "/") || len(got) > 60 {
		t.Errorf("the job of a strange UID is %q", got)
	}
}

func TestGraceIsNeverShorterThanTheClients(t *testing.T) {
	for seconds, want := range map[int64]time.Duration{0: 30 * time.Second, 45: 45 * time.Second} {
		pod := testPod()
		pod.Spec.TerminationGracePeriodSeconds = &seconds
		r, err := mapping{config: testConfig(t, nil), owner: owner{"home", "node"}}.job(testInputs(pod), 2400)
		if err != nil {
			t.Fatal(err)
		}
		if got := *r.job.TaskGroups[0].Tasks[0].KillTimeout; got != want {
			t.Errorf("grace of %d s: the client waits %s, want %s", seconds, got, want)
		}
	}
}
