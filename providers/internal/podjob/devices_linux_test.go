// SPDX-License-Identifier: Apache-2.0

package podjob

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/enter"
)

const gpu = "vendor.example/gpu"

// someGPUs is a CDI specification of a machine with two devices. The second device has its own node, so that it can be hidden.
const someGPUs = `cdiVersion: 0.8.0
kind: vendor.example/gpu
containerEdits:
  env: [DRIVER=1, PATH=/driver]
  mounts: [{hostPath: DIR/driver, containerPath: /opt/driver, options: [ro, nosuid, nodev, bind]}]
  hooks: [{hookName: createContainer, path: /bin/sh, args: [sh, DIR/hook], env: ["PATH=/bin:/usr/bin"]}]
devices:
- name: all
  containerEdits: {deviceNodes: [{path: /dev/vk-gpu0, hostPath: /dev/null}, {path: /dev/full}]}
- name: "0"
  containerEdits: {env: [GPU=zero], deviceNodes: [{path: /dev/vk-gpu0, hostPath: /dev/null}]}
- name: GPU-1234
  containerEdits: {env: [GPU=zero], deviceNodes: [{path: /dev/vk-gpu0, hostPath: /dev/null}]}
- name: "1"
  containerEdits: {env: [GPU=one], deviceNodes: [{path: /dev/full}], additionalGids: [44]}
`

// machineWithGPUs returns the directory with CDI specifications of a machine where no device is claimed.
func machineWithGPUs(t *testing.T, spec string) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	of := rootLocks
	rootLocks = filepath.Join(t.TempDir(), "vk-devices")
	t.Cleanup(func() {
		rootLocks = of
		if os.Remove("/dev/vk-gpu0") == nil {
			t.Error("the machine has got the device of a container")
		}
	})
	if err := os.Mkdir(filepath.Join(dir, "driver"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"other.json": `{"cdiVersion": "9.9.9", "kind": "vendor.example/nic", "unknown": true}`, "gpu.yaml": strings.ReplaceAll(spec, "DIR", dir), "driver/lib": "the driver\n",
		// The hook gets the bundle in its input; the configuration of the bundle has the root.
		"hook": `bundle=$(sed 's/.*"bundle":"\([^"]*\)".*/\1/'); root=$(sed 's/.*"path":"\([^"]*\)".*/\1/' "$bundle/config.json"); echo hooked >"$root/etc/hooked"`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// asking returns a pod whose containers request GPUs: init containers first, the sidecar after a minus.
func asking(init []int, containers ...int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"}}
	container := func(n int) corev1.Container {
		return corev1.Container{Image: "none", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{gpu: *resource.NewQuantity(int64(n), resource.DecimalSI)}}}
	}
	for i, n := range init {
		c := container(max(n, -n))
		if c.Name = "init-" + string(rune('a'+i)); n < 0 {
			c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	for i, n := range containers {
		c := container(n)
		c.Name = string(rune('a' + i))
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	return pod
}

// TestPodsShareNoDevice: a device, independently of its names, is claimed by one pod of a machine until the pod has ended.
func TestPodsShareNoDevice(t *testing.T) {
	dirs := []string{machineWithGPUs(t, someGPUs)}
	claim := func(pod *corev1.Pod, want string) *devices {
		t.Helper()
		d, err := claimDevices(pod, gpu, dirs)
		got := ""
		for _, k := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			for _, one := range d.given[k.Name] {
				got += k.Name + "=" + one.name + " "
			}
		}
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
		return d
	}
	first := claim(asking(nil, 1), "a=0 ")
	second := claim(asking(nil, 0, 1), "b=1 ")
	claim(asking(nil, 1), "asks for 1 of "+gpu+", and 0 of the 2 devices of this machine are free")
	claim(asking(nil, 0), "")
	first.release()
	claim(asking(nil, 2), "and 1 of the 2 devices").release()
	second.release()
	claim(asking(nil, 3), "and 2 of the 2 devices").release()
	claim(asking([]int{2}, 1), "init-a=0 init-a=1 a=0 ").release()
	claim(asking([]int{-1, 1}, 1), "init-a=0 init-b=1 a=1 ").release()
}

// TestClaimsOfOthersAreRefused: another user of the machine has made the directory of the claims, as their own, writable for everybody, or as a link.
func TestClaimsOfOthersAreRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a directory is given to another user: run it as root")
	}
	dirs := []string{machineWithGPUs(t, someGPUs)}
	for name, squat := range map[string]func(dir string) error{
		"another user's": func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 12345, 12345)) },
		"open for all":   func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)) },
		"a link":         func(dir string) error { return os.Symlink(t.TempDir(), dir) },
		"a file":         func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
	} {
		if err := squat(rootLocks); err != nil {
			t.Fatal(err)
		}
		d, err := claimDevices(asking(nil, 1), gpu, dirs)
		if err == nil || !strings.Contains(err.Error(), rootLocks+" is no directory that only user 0 may use") {
			t.Errorf("%s: got %v", name, err)
		}
		d.release()
		if err := os.RemoveAll(rootLocks); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSpecificationsRefused: if a container cannot have the devices of a machine, the error has the reason.
func TestSpecificationsRefused(t *testing.T) {
	for spec, want := range map[string]string{
		"": "no CDI specification of this machine has such devices: make one in ",
		strings.Replace(someGPUs, "createContainer", "poststop", 1):                             "hook poststop: only createContainer hooks are run",
		strings.Replace(someGPUs, "options: [", "type: tmpfs, options: [", 1):                   "mount of type tmpfs at /opt/driver",
		strings.Replace(someGPUs, "  env: [DRIVER", "  intelRdt: {closID: x}\n  env: [DRIV", 1): "cache settings",
		strings.Replace(someGPUs, "  env: [DRIVER", "  later: {}\n  env: [DRIV", 1):             "unknown field",
	} {
		d, err := claimDevices(asking(nil, 1), gpu, []string{machineWithGPUs(t, spec), "/none"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		d.release()
	}
}

// TestJobGivesDevices: a container of a job has its devices with their variables, but no devices of other pods.
func TestJobGivesDevices(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("containers have namespaces of their own: run it as root")
	}
	dir, logs := machineWithGPUs(t, someGPUs), t.TempDir()
	pod := asking(nil, 1, 0)
	pod.Spec.RestartPolicy, pod.Spec.TerminationGracePeriodSeconds = corev1.RestartPolicyNever, new(int64(1))
	of := map[string]*corev1.Container{}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		c.Command = []string{"/bin/sh", "-c", `for d in vk-gpu0 full zero; do test ! -c /dev/$d || echo $d; done; echo $GPU $DRIVER $PATH >/dev/vk-gpu0; echo $GPU`}
		c.Env = []corev1.EnvVar{{Name: "PATH", Value: "/bin:/usr/bin"}}
		of[c.Name] = c
	}
	host := &memory{bundle: Bundle{Pod: pod, Containers: of, Node: &corev1.Node{}, DeviceKind: gpu}}
	if err := Run(t.Context(), Config{Host: host, LogDir: logs, LookEvery: time.Minute, CDI: []string{dir}}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "vk-gpu0 zero zero", "b": "zero"} {
		text, err := os.ReadFile(filepath.Join(logs, "ns_p_u", name, "0.log"))
		var said []string
		for line := range strings.Lines(string(text)) {
			said = append(said, strings.Fields(line)[3:]...)
		}
		if got := strings.Join(said, " "); err != nil || !strings.HasPrefix(got, want) || strings.Contains(got, "full") {
			t.Errorf("container %s says %q, %v, want %q; the status is %+v", name, got, err, want, host.last().Pod)
		}
	}
}

// unpacked is an image store with one image.
type unpacked struct {
	imageStore
	dir string
}

func (u unpacked) find(context.Context, string) (*Image, error) { return &Image{}, nil }

func (u unpacked) unpack(context.Context, string) (string, error) { return u.dir, nil }

// TestImageGetsDriver: a container of an image has its devices, the driver of the machine, and the files that the driver's hooks make.
func TestImageGetsDriver(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("containers have namespaces of their own: run it as root")
	}
	image := t.TempDir()
	if err := os.Mkdir(filepath.Join(image, "etc"), 0o755); err != nil { //nolint:gosec // as in images
		t.Fatal(err)
	}
	for _, c := range []struct {
		pod        *corev1.Pod
		name, want string
	}{
		{asking(nil, 1, 0), "a", "the driver hooked 1 /bin:/usr/bin groups\nread-only\nvk-gpu0"},
		{asking(nil, 1, 0), "b", "/bin:/usr/bin groups\nread-only"},
		{asking(nil, 2), "a", "the driver hooked 1 /bin:/usr/bin groups 44\nread-only\nvk-gpu0\nfull"},
	} {
		d, err := claimDevices(c.pod, gpu, []string{machineWithGPUs(t, someGPUs)})
		if err != nil {
			t.Fatal(err)
		}
		defer d.release()
		r := newRuntime(t.TempDir(), "")
		r.store, r.devices = unpacked{dir: image}, d
		config := &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: c.name}, Image: &runtimeapi.ImageSpec{Image: "x"}, Envs: []*runtimeapi.KeyValue{{Key: "PATH", Value: []byte("/bin:/usr/bin")}},
			Command: []string{"/bin/sh", "-c", `echo $(cat /opt/driver/lib /etc/hooked) $DRIVER $PATH groups $(id -G | sed 's/^0 *//'); touch /opt/driver/x || echo read-only; for d in vk-gpu0 full; do test ! -c /dev/$d || echo $d; done`},
		}
		for _, dir := range []string{"/bin", "/usr", "/lib", "/lib64"} {
			if _, err := os.Stat(dir); err == nil {
				config.Mounts = append(config.Mounts, &runtimeapi.Mount{HostPath: dir, ContainerPath: dir, Readonly: true})
			}
		}
		e, err := r.firstProcess(t.Context(), "c", config)
		if err != nil {
			t.Fatal(err)
		}
		got, err := outputOf(e)
		if err != nil || strings.TrimSpace(got) != c.want {
			t.Errorf("container %s says %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

// outputOf runs a container, and returns its output.
func outputOf(e enter.Entry) (string, error) {
	p, err := launchContainer(e)
	if err != nil {
		return "", err
	}
	defer p.close()
	out, err := io.ReadAll(p.stdout)
	_, _ = p.process.Wait()
	return string(out), err
}
