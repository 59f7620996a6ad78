// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// docker is the Docker daemon of a single test. Its socket, images and containers are in a directory of the
// test, and it makes no networks.
type docker struct {
	socket string
	http   *http.Client
	ended  chan struct{}
}

// These images exist only in the daemon. No registry has them, so a container that runs has used the daemon's
// image.
const (
	image      = "vk/shell:1"
	imagePause = "vk/pause:1"
)

func newDocker(t *testing.T) *docker {
	t.Helper()
	needAgent(t)
	if _, err := exec.LookPath("dockerd"); err != nil {
		if os.Getenv(requireAgent) == "1" {
			t.Fatal("there is no dockerd: docker.io of Debian has it")
		}
		t.Skip("there is no dockerd: docker.io of Debian has it")
	}
	dir, err := os.MkdirTemp("", "vkdocker") //nolint:usetesting // sockets below it have short names
	if err != nil {
		t.Fatal(err)
	}
	d := &docker{socket: filepath.Join(dir, "sock"), ended: make(chan struct{})}
	d.http = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", d.socket)
	}}}
	out, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	command := exec.Command("dockerd", "--data-root", filepath.Join(dir, "data"), "--exec-root", filepath.Join(dir, "exec"), "--pidfile", filepath.Join(dir, "pid"),
		"--host", "unix://"+d.socket, "--bridge=none", "--iptables=false", "--ip-forward=false", "--ip-masq=false", "--cgroup-parent", "/"+os.Getenv(inside)+"docker")
	command.Stdout, command.Stderr = out, out
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = command.Wait(); close(d.ended) }()
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		<-d.ended
		unmountBelow(dir)
		_ = os.RemoveAll(dir)
	})
	if !await(t, func() bool {
		select {
		case <-d.ended:
			return true
		default:
			return d.do(http.MethodGet, "/_ping", nil, nil) == nil
		}
	}) || d.do(http.MethodGet, "/_ping", nil, nil) != nil {
		said, _ := os.ReadFile(out.Name())
		t.Fatalf("dockerd does not answer:\n%s", said[max(0, len(said)-3000):])
	}
	d.load(t, image, `ENV FROM_IMAGE=yes`)
	d.load(t, imagePause, `ENTRYPOINT ["/bin/sleep","1000000"]`)
	return d
}

// do makes a request to the daemon.
func (d *docker) do(method, path string, body io.Reader, out any) error {
	request, err := http.NewRequest(method, "http://docker"+path, body)
	if err != nil {
		return err
	}
	answer, err := d.http.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s %w", method, path, answer.Status, data, err)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}

// load gives the daemon an image that contains busybox.
func (d *docker) load(t *testing.T, name, change string) {
	t.Helper()
	path, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	add := func(h tar.Header, data []byte) {
		h.Size = int64(len(data))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(data)
	}
	for dir, mode := range map[string]int64{"bin/": 0o755, "etc/": 0o755, "tmp/": 0o1777} {
		add(tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: mode}, nil)
	}
	add(tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755}, program)
	for _, link := range append(links, "tail", "grep") {
		add(tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + link, Linkname: "busybox"}, nil)
	}
	add(tar.Header{Typeflag: tar.TypeReg, Name: "etc/passwd", Mode: 0o644}, []byte("root:x:0:0::/:/bin/sh\n"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	repo, tag, _ := strings.Cut(name, ":")
	if err := d.do(http.MethodPost, "/images/create?fromSrc=-&repo="+url.QueryEscape(repo)+"&tag="+tag+"&changes="+url.QueryEscape(change), &layer, nil); err != nil {
		t.Fatal(err)
	}
}

// dockerAgent starts an agent whose clients run containers with the daemon.
func dockerAgent(t *testing.T, d *docker) *agent {
	t.Helper()
	a := newAgent(t, agent{acl: true, extra: fmt.Sprintf(`
plugin "docker" {
  config {
    endpoint    = "unix://%s"
    infra_image = %q
    gc { image = false }
  }
}
`, d.socket, imagePause)})
	if err := a.until(func() bool {
		var nodes []*nomadapi.NodeListStub
		return a.do(http.MethodGet, "/v1/nodes", nil, &nodes) == nil && len(nodes) == 1 && nodes[0].Drivers["docker"] != nil && nodes[0].Drivers["docker"].Healthy
	}); err != nil {
		t.Fatalf("the driver docker: %v\n%s", err, a.log())
	}
	return a
}

// dockerPod returns a pod whose container main runs a script with the image.
func dockerPod(name, script string) *corev1.Pod {
	pod := shellPod(name, DriverDocker, script)
	pod.Spec.Containers[0].Image = image
	return pod
}

// containers returns the names of the daemon's containers.
func (d *docker) containers(t *testing.T) (names []string) {
	t.Helper()
	var all []struct{ Names []string }
	if err := d.do(http.MethodGet, "/containers/json?all=1", nil, &all); err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		names = append(names, c.Names...)
	}
	return names
}

// TestDocker checks the features of pods with the driver docker, on a real daemon.
func TestDocker(t *testing.T) {
	d := newDocker(t)
	a := dockerAgent(t, d)
	c := a.config("docker")
	c.Drivers = []string{DriverDocker}
	h := openHome(t, c, objects{configMap: map[string][]byte{"c": []byte("conf {{ x }} ${HOME}")}, secret: map[string][]byte{"s": []byte(canary)}})

	whole := dockerPod("whole", `printf '%s|' "$FROM_IMAGE" "$S" "$0"; cat /conf/c; printf '|'; cat /keys/s /secrets/s; printf '|'; cat /data/order; printf '|'; pwd; id -u; `+forever)
	m := &whole.Spec.Containers[0]
	m.Args = []string{"${HOME} %{x}"}
	m.WorkingDir = "/tmp"
	m.Env = []corev1.EnvVar{{Name: "S", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "s"}}}}
	m.VolumeMounts = []corev1.VolumeMount{{Name: "conf", MountPath: "/conf"}, {Name: "keys", MountPath: "/keys"}, {Name: "keys", MountPath: "/secrets"}, {Name: "data", MountPath: "/data", SubPath: "x"}}
	data := []corev1.VolumeMount{{Name: "data", MountPath: "/d"}}
	whole.Spec.InitContainers = []corev1.Container{
		{Name: "first", Image: image, Command: []string{"sh", "-c", "sleep 1; mkdir -p /d/x; echo first >> /d/x/order"}, VolumeMounts: data},
		{Name: "second", Image: image, Command: []string{"sh", "-c", "echo second >> /d/x/order"}, VolumeMounts: data},
	}
	whole.Spec.Volumes = []corev1.Volume{
		{Name: "conf", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
		{Name: "keys", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}},
		{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	code := dockerPod("code", "exit 3")
	user := dockerPod("user", "id -u; id -g; echo x > /x || echo cannot write; "+forever)
	user.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: ptr.To[int64](1000), RunAsGroup: ptr.To[int64](2000), ReadOnlyRootFilesystem: ptr.To(true)}
	absent := dockerPod("absent", forever)
	absent.Spec.Containers[0].Image = "127.0.0.1:1/absent:1"
	pods := []*corev1.Pod{whole, code, user, absent}
	for _, pod := range pods {
		h.create(pod)
	}
	got := h.until(whole, "running", phase(corev1.PodRunning))
	if !strings.HasPrefix(got.Status.PodIP, "172.26.") {
		t.Errorf("the pod has the address %q, want one of the bridge", got.Status.PodIP)
	}
	want := strings.Join([]string{"yes", canary, "${HOME} %{x}", "conf {{ x }} ${HOME}", canary + canary, "first\nsecond\n", "/tmp\n0"}, "|")
	var said string
	if !await(t, func() bool { said = h.log(whole); return said == want }) {
		t.Errorf("the container sees\n%q, want\n%q", said, want)
	}
	if code, out := h.exec(whole, "cat /keys/s; exit 7"); code != 7 || out != canary {
		t.Errorf("exec: got %d and %q, want 7 and the secret", code, out)
	}
	h.until(code, "ended", func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodFailed && p.Status.ContainerStatuses[0].State.Terminated != nil && p.Status.ContainerStatuses[0].State.Terminated.ExitCode == 3
	})
	if !await(t, func() bool { said = h.log(user); return strings.HasPrefix(said, "1000\n2000\ncannot write") }) {
		t.Errorf("the container of a user says %q", said)
	}
	missing := h.until(absent, "without its image", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) == 1 && (p.Status.Phase == corev1.PodFailed || p.Status.ContainerStatuses[0].State.Waiting != nil && p.Status.ContainerStatuses[0].State.Waiting.Reason == "ErrImagePull")
	})
	if text := fmt.Sprint(missing.Status); !strings.Contains(text, "pull") {
		t.Errorf("a pod without its image says %s", text)
	}
	var job any
	if err := a.do(http.MethodGet, "/v1/job/"+h.d.store.owner.jobID(string(whole.UID)), nil, &job); err != nil || strings.Contains(fmt.Sprint(job), canary) {
		t.Errorf("the job has the value of a secret, %v", err)
	}
	if len(d.containers(t)) == 0 {
		t.Error("the daemon has no containers, so who runs them?")
	}
	h.remove(pods...)
	a.nothingLeft(t)
	if !await(t, func() bool { return len(d.containers(t)) == 0 }) {
		t.Errorf("a minute after the pods were deleted the daemon has %q", d.containers(t))
	}
}
