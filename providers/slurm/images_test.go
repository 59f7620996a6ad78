// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurm

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	corev1 "k8s.io/api/core/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/slurmtest"
)

// imageFile is a file of a test image: a program of the machine, a text, or a link.
type imageFile struct {
	path, from, text, link string
}

// testImage returns an image with a busybox shell, a user, and the files that the test program needs to run in
// it.
func testImage(t *testing.T, busybox string) v1.Image {
	t.Helper()
	files := []imageFile{
		{path: "bin/busybox", from: busybox}, {path: "etc/release", text: "image of a test\n"},
		{path: "etc/passwd", text: "root:x:0:0::/root:/bin/sh\nweb:x:1234:1235::/home/web:/bin/sh\n"}, {path: "etc/group", text: "more:x:77:web\n"},
	}
	for _, applet := range []string{"sh", "cat", "id", "sleep", "ls"} {
		files = append(files, imageFile{path: "bin/" + applet, link: "busybox"})
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if program, err := elf.Open(self); err == nil { // a program that is released needs no libraries
		libraries, _ := program.ImportedLibraries()
		_ = program.Close()
		if len(libraries) > 0 {
			out, err := exec.CommandContext(t.Context(), "ldd", self).Output()
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range strings.Fields(string(out)) {
				if filepath.IsAbs(word) {
					files = append(files, imageFile{path: strings.TrimPrefix(word, "/"), from: word})
				}
			}
		}
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h, data := &tar.Header{Name: f.path, Mode: 0o755, Typeflag: tar.TypeReg}, []byte(f.text)
		switch {
		case f.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.link
		case f.from != "":
			if data, err = os.ReadFile(f.from); err != nil {
				t.Fatal(err)
			}
		}
		h.Size = int64(len(data))
		err := w.WriteHeader(h)
		if err == nil && len(data) > 0 {
			_, err = w.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{Architecture: "amd64", OS: "linux", RootFS: v1.RootFS{Type: "layers"}, Config: v1.Config{
		User: "web", WorkingDir: "/work", Env: []string{"FROM=image", "PATH=/bin"}, Entrypoint: []string{"/bin/sh", "-c"},
		Cmd: []string{"echo $FROM $PWD $(id -u):$(id -g):$(id -G) $HOME $SLURM_JOB_ID; cat /etc/release /secret/key; exec sleep 300"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	image, err = mutate.AppendLayers(image, layer)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// logins are the registry credentials of a test.
type logins struct{ registry, password string }

func (l logins) PullCredentials(_ context.Context, pod *corev1.Pod) ([]node.RegistryCredential, error) {
	if pod.Annotations["login"] == "no" {
		return nil, nil
	}
	return []node.RegistryCredential{{Registry: l.registry, Username: "puller", Password: l.password}}, nil
}

// TestImagesByPodman checks that podman pulls the images of containers, and that no other trace of podman is
// left.
func TestImagesByPodman(t *testing.T) {
	t.Parallel()
	needs(t, "podman", "busybox")
	c := slurmtest.Start(t, slurmtest.Options{Env: []string{"CONTAINERS_STORAGE_CONF", "CONTAINERS_REGISTRIES_CONF"}})
	images(t, c, "podman")
	cmd := exec.CommandContext(t.Context(), "podman", "ps", "--all", "--quiet")
	cmd.Env = append(os.Environ(), "CONTAINERS_STORAGE_CONF="+filepath.Join(c.Dir, "CONTAINERS_STORAGE_CONF"))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("containers of podman: %s, %v", out, err)
	}
}

// TestImagesUnpacked checks that jobs pull and unpack images themselves, on nodes without any program for
// images.
func TestImagesUnpacked(t *testing.T) {
	t.Parallel()
	needs(t, "busybox")
	images(t, slurmtest.Start(t, slurmtest.Options{}), "unpack")
}

// needs skips a test without programs, or fails it if VK_REQUIRE_SLURM is 1.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("VK_REQUIRE_SLURM") == "1" {
				t.Fatalf("apt-get install podman busybox-static: %v", err)
			}
			t.Skipf("apt-get install podman busybox-static: %v", err)
		}
	}
}

// images fails the test unless containers have the files, user, environment and command of their image, from a
// registry that requires a login.
func images(t *testing.T, c *slurmtest.Cluster, by string) {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	const password = "canary-of-the-registry"
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, got, _ := r.BasicAuth(); user != "puller" || got != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	ref, err := name.ParseReference(host+"/team/app:1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, testImage(t, busybox), remote.WithAuth(&authn.Basic{Username: "puller", Password: password})); err != nil {
		t.Fatal(err)
	}
	storage := fmt.Sprintf("[storage]\ndriver = \"vfs\"\nrunroot = %q\ngraphroot = %q\n", c.Dir+"/podman/run", c.Dir+"/podman/root")
	registries := fmt.Sprintf("[[registry]]\nlocation = %q\ninsecure = true\n", host)
	if err := errors.Join(
		os.WriteFile(filepath.Join(c.Dir, "CONTAINERS_STORAGE_CONF"), []byte(storage), 0o600), os.WriteFile(filepath.Join(c.Dir, "CONTAINERS_REGISTRIES_CONF"), []byte(registries), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	config := testConfig(c, by)
	config.Containers = by
	p, _ := running(t, config, objects{"s": {Data: map[string][]byte{"key": []byte("of a volume\n")}}})
	p.UsePullCredentials(logins{host, password})
	image := func(name, image string) *corev1.Pod {
		pod := shell(name, "")
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "login"}}
		pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Command, pod.Spec.Containers[0].ImagePullPolicy = image, nil, corev1.PullAlways
		return pod
	}
	a := image("a", host+"/team/app:1")
	a.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/secret"}}
	a.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}}}
	b := image("b", host+"/team/app:1") // another command, and another user
	b.Spec.Containers[0].Command, b.Spec.Containers[0].Args = []string{"sh"}, []string{"-c", "echo $(id -u) > /etc/release; cat /etc/release; exit 6"}
	b.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(0))}
	stranger, missing := image("stranger", host+"/team/app:1"), image("missing", host+"/team/none:1")
	stranger.Annotations = map[string]string{"login": "no"}
	for _, pod := range []*corev1.Pod{a, b, stranger, missing} {
		if err := p.CreatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	awaitPhase(t, p, "a", "Running")
	awaitPhase(t, p, "b", "Failed")
	p.mu.Lock()
	number := p.pods[a.UID].job.ID
	p.mu.Unlock()
	awaitLog(t, p, "a", fmt.Sprintf("image /work 1234:1235:1235 77 /home/web %d\nimage of a test\nof a volume\n", number))
	awaitLog(t, p, "b", "0\n")
	if got, err := p.GetPod(t.Context(), "ns", "b"); err != nil || got.Status.ContainerStatuses[0].State.Terminated.ExitCode != 6 {
		t.Errorf("b: %+v, %v, want 6", got, err)
	}
	var out bytes.Buffer
	err = p.RunInContainer(t.Context(), "ns", "a", "c", []string{"sh", "-c", "cat /etc/release; id -u; ls " + c.Dir + "; exit 4"}, output{out: &out})
	var exited utilexec.ExitError
	if !errors.As(err, &exited) || exited.ExitStatus() != 4 || out.String() != "image of a test\n1234\n" {
		t.Errorf("exec: %q, %v", out.String(), err)
	}
	for name, want := range map[string]string{"stranger": "nauthorized", "missing": "team/none"} {
		await(t, name+" is to say why it has no image", func() (bool, string) {
			pod, err := p.GetPod(t.Context(), "ns", name)
			if err != nil || len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Waiting == nil {
				return false, fmt.Sprint(pod, err)
			}
			w := pod.Status.ContainerStatuses[0].State.Waiting
			return strings.Contains(w.Reason, "Pull") && strings.Contains(w.Message, want) && !strings.Contains(w.Message, password), w.Reason + " " + w.Message
		})
	}
	for _, pod := range []*corev1.Pod{a, b, stranger, missing} {
		if err := p.DeletePod(t.Context(), pod); err != nil {
			t.Error(err)
		}
	}
	await(t, "nothing is to be left but the storage of podman", func() (bool, string) {
		all, err := p.GetPods(t.Context())
		left, _ := os.ReadDir(filepath.Join(c.Dir, "tmp"))
		return err == nil && len(all) == 0 && len(left) == 0, fmt.Sprint(len(all), err, left)
	})
}

// awaitLog waits until the log of the pod's container c has the wanted text.
func awaitLog(t *testing.T, p *provider, name, want string) {
	t.Helper()
	await(t, name+" is to write", func() (bool, string) {
		r, err := p.GetContainerLogs(t.Context(), "ns", name, "c", api.ContainerLogOpts{})
		if err != nil {
			return false, err.Error()
		}
		defer r.Close()
		data, err := io.ReadAll(r)
		return err == nil && string(data) == want, fmt.Sprintf("%q, want %q", data, want)
	})
}
