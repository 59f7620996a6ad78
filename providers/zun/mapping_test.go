// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/zun"
)

func testMapping() mapping {
	return mapping{
		config: Config{ClusterName: "home", Networks: []string{"pods"}, SecurityGroups: []string{"web"}, AvailabilityZone: "az-1", EmptyDirGiB: 2, Capsules: true},
		owner:  identity.Owner{Cluster: "home", Node: "vk"},
	}
}

func testPod(containers ...corev1.Container) *corev1.Pod {
	for i := range containers {
		containers[i].Name, containers[i].Image = string(rune('a'+i)), "img:1"
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid-1"},
		Spec:       corev1.PodSpec{Containers: containers, RestartPolicy: corev1.RestartPolicyAlways},
	}
}

// inputs returns the inputs for a pod whose environment is resolved.
func inputs(pod *corev1.Pod) *service.Inputs {
	m := testMapping()
	in := &service.Inputs{Pod: pod, Name: m.owner.Name(identity.Of(pod)), Tags: m.owner.Tags(identity.Of(pod)), Containers: map[string]*corev1.Container{}, Files: map[string][]podspec.File{}}
	for i := range pod.Spec.Containers {
		in.Containers[pod.Spec.Containers[i].Name] = &pod.Spec.Containers[i]
	}
	return in
}

// fits returns a body as JSON, after it has validated the body with Zun's own schema.
func fits(t *testing.T, operation string, body any) string {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	var o any
	if err := json.Unmarshal(data, &o); err != nil {
		t.Fatal(err)
	}
	if err := zun.CheckBody(operation, o); err != nil {
		t.Errorf("Zun refuses %s: %v", data, err)
	}
	return string(data)
}

func TestContainerHasAllOfThePod(t *testing.T) {
	pod := testPod(corev1.Container{
		Command: []string{"run"}, Args: []string{"x"}, WorkingDir: "/w", Stdin: true, TTY: true, Env: []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "EMPTY"}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("50m"), "memory": resource.MustParse("1Mi"), "ephemeral-storage": resource.MustParse("1Gi")},
			Limits:   corev1.ResourceList{"memory": resource.MustParse("100M")},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: "keys", MountPath: "/keys"}, {Name: "keys", MountPath: "/one", SubPath: "dir/b"}, {Name: "data", MountPath: "/data"}},
	})
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "keys", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}},
		{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	in := inputs(pod)
	in.Files["keys"] = []podspec.File{{Path: "a", Data: []byte("1"), Mode: 0o644}, {Path: "dir/b", Data: []byte("2"), Mode: 0o644}}
	got, err := testMapping().containerRequest(in)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"availability_zone":"az-1","command":["x"],"cpu":0.1,"entrypoint":["run"],"environment":{"A":"b","EMPTY":""},"hostname":"web","image":"img:1","interactive":true,` +
		`"labels":{"vk-cluster":"home","vk-name":"web","vk-namespace":"default","vk-node":"vk","vk-uid":"uid-1"},"memory":"96",` +
		`"mounts":[{"destination":"/keys/a","source":"MQ==","type":"bind"},{"destination":"/keys/dir/b","source":"Mg==","type":"bind"},` +
		`{"destination":"/one","source":"Mg==","type":"bind"},{"destination":"/data","size":"2","type":"volume"}],` +
		`"name":"` + in.Name + `","nets":[{"network":"pods"}],"restart_policy":{"Name":"no"},"security_groups":["web"],"tty":true,"workdir":"/w"}`
	if text := fits(t, "containers.post", got); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	again, err := testMapping().containerRequest(in)
	if err != nil || fits(t, "containers.post", again) != want {
		t.Errorf("the same pod makes another request: %v", err)
	}
}

// TestCommandWithoutArgs: Zun fills an empty entrypoint or command from the image. Kubernetes ignores the arguments of the image if the pod has a
// command.
func TestCommandWithoutArgs(t *testing.T) {
	image := zun.Image{Entrypoint: []string{"of-image"}, Command: []string{"argument-of-image"}}
	for name, c := range map[string]struct{ command, args, want []string }{
		"nothing":                {nil, nil, []string{"of-image", "argument-of-image"}},
		"arguments":              {nil, []string{"x"}, []string{"of-image", "x"}},
		"command and arguments":  {[]string{"run"}, []string{"x"}, []string{"run", "x"}},
		"a command of a word":    {[]string{"run"}, nil, []string{"/bin/sh", "-c", `exec "$1"`, "sh", "run"}},
		"a command of two words": {[]string{"run", "it"}, nil, []string{"run", "it"}},
	} {
		got, err := testMapping().containerRequest(inputs(testPod(corev1.Container{Command: c.command, Args: c.args})))
		if err != nil {
			t.Fatal(err)
		}
		fits(t, "containers.post", got)
		entrypoint, _ := got["entrypoint"].([]string)
		command, _ := got["command"].([]string)
		if len(entrypoint) == 0 {
			entrypoint = image.Entrypoint
		}
		if len(command) == 0 {
			command = image.Command
		}
		if all := slices.Concat(entrypoint, command); !slices.Equal(all, c.want) {
			t.Errorf("%s: it runs %q, want %q", name, all, c.want)
		}
	}
}

func refused(t *testing.T, pod *corev1.Pod, path string) {
	t.Helper()
	m := testMapping()
	m.config.Capsules = true
	if err := m.checkPod(pod); !errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), path+": ") {
		t.Errorf("got %v, want an error of the kind invalid-input that begins with %s", err, path)
	}
}

// TestDigestRefused: Zun drops the digest, and would run another image.
func TestDigestRefused(t *testing.T) {
	pod := testPod(corev1.Container{})
	pod.Spec.Containers[0].Image = "img@sha256:" + strings.Repeat("0", 64)
	refused(t, pod, "spec.containers[0].image")
}

// TestJobInCapsuleRefused: Zun never reports the end of a capsule's container.
func TestJobInCapsuleRefused(t *testing.T) {
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure} {
		pod := testPod(corev1.Container{}, corev1.Container{})
		pod.Spec.RestartPolicy = policy
		refused(t, pod, "spec.restartPolicy")
		pod.Spec.Containers = pod.Spec.Containers[:1]
		if err := testMapping().checkPod(pod); err != nil {
			t.Errorf("of one container, %s: %v", policy, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	files := corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}}}
	for path, change := range map[string]func(*corev1.Pod, *corev1.Container){
		"spec.containers[0].imagePullPolicy": func(_ *corev1.Pod, c *corev1.Container) { c.ImagePullPolicy = corev1.PullNever },
		"spec.containers[0].stdinOnce":       func(_ *corev1.Pod, c *corev1.Container) { c.StdinOnce = true },
		"spec.subdomain":                     func(p *corev1.Pod, _ *corev1.Container) { p.Spec.Subdomain = "d" },
		"spec.containers[0].resources": func(_ *corev1.Pod, c *corev1.Container) {
			c.Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
		},
		"spec.containers": func(_ *corev1.Pod, c *corev1.Container) {
			c.Resources.Requests = corev1.ResourceList{"ephemeral-storage": resource.MustParse("11Gi")}
		},
		"spec.containers[0].volumeMounts[0].subPathExpr": func(p *corev1.Pod, c *corev1.Container) {
			p.Spec.Volumes, c.VolumeMounts = []corev1.Volume{files}, []corev1.VolumeMount{{Name: "v", MountPath: "/v", SubPathExpr: "$(A)"}}
		},
		"spec.volumes[0].emptyDir": func(p *corev1.Pod, c *corev1.Container) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("3Gi"))}}}}
			c.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
		},
		"spec.volumes[0]": func(p *corev1.Pod, c *corev1.Container) {
			v := *files.DeepCopy()
			v.ConfigMap.DefaultMode = new(int32(fs.FileMode(0o600)))
			v.ConfigMap.Items = []corev1.KeyToPath{{Key: "k", Path: "k"}}
			p.Spec.Volumes, c.VolumeMounts = []corev1.Volume{v}, []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
		},
	} {
		pod := testPod(corev1.Container{})
		change(pod, &pod.Spec.Containers[0])
		refused(t, pod, path)
	}
	for path, change := range map[string]func(*corev1.Pod, *corev1.Container){
		"spec.containers[0].command": func(_ *corev1.Pod, c *corev1.Container) { c.Command = []string{"x"} },
		"spec.containers[0].volumeMounts": func(_ *corev1.Pod, c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
		},
		"spec.containers[0].livenessProbe": func(_ *corev1.Pod, c *corev1.Container) { c.ReadinessProbe = &corev1.Probe{} },
		"spec.imagePullSecrets": func(p *corev1.Pod, _ *corev1.Container) {
			p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "s"}}
		},
	} {
		pod := testPod(corev1.Container{}, corev1.Container{})
		change(pod, &pod.Spec.Containers[0])
		refused(t, pod, path)
	}
	m := testMapping()
	m.config.Capsules = false
	if err := m.checkPod(testPod(corev1.Container{}, corev1.Container{})); !errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), "spec.containers: ") {
		t.Errorf("a capsule without the switch: %v", err)
	}
}

func TestCapsuleHasAllOfThePod(t *testing.T) {
	pod := testPod(corev1.Container{Args: []string{"x"}, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}}}, corev1.Container{Env: []corev1.EnvVar{{Name: "A", Value: "b"}}})
	in := inputs(pod)
	got, err := testMapping().capsuleTemplate(in)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"template":{"availabilityZone":"az-1","capsuleVersion":"beta","kind":"capsule",` +
		`"metadata":{"labels":{"vk-cluster":"home","vk-name":"web","vk-namespace":"default","vk-node":"vk","vk-uid":"uid-1"},"name":"` + in.Name + `"},` +
		`"spec":{"containers":[{"args":["x"],"image":"img:1","resources":{"requests":{"cpu":1,"memory":1024}}},{"env":{"A":"b"},"image":"img:1"}],"restartPolicy":"Always"}}}`
	if text := fits(t, "capsules.post", map[string]any{"template": got}); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

func TestLoginIsThatOfTheImage(t *testing.T) {
	in := inputs(testPod(corev1.Container{}))
	in.Pod.Spec.Containers[0].Image = "registry.example.com/team/img:1"
	in.Logins = []node.RegistryCredential{{Registry: "other.example.com", Username: "o", Password: "p"}, {Registry: "https://registry.example.com/team", Username: "u", Password: "p"}}
	l := &logins{prefix: "vk-x-", salt: "salt"}
	got, needed := l.registryOf(in)
	if want := (registry{Name: "vk-x-" + identity.Hash("salt", "registry.example.com", "u", "p"), Domain: "registry.example.com", Username: "u", Password: "p"}); !needed || got != want {
		t.Errorf("got %+v, %t, want %+v", got, needed, want)
	}
	fits(t, "registries.post", map[string]any{"registry": got})
}
