// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fargate

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/ecs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
)

// TestContainers runs a pod in real containers: behind the emulator, the provider process makes them with runc.
// The test checks files with their modes, variables, the log, commands, and the exit code.
func TestContainers(t *testing.T) {
	busybox, errBusybox := exec.LookPath("busybox")
	_, errRunc := exec.LookPath("runc")
	if err := errors.Join(errBusybox, errRunc); err != nil || os.Geteuid() != 0 {
		t.Skipf("it needs runc and busybox, as root: %v", err)
	}
	useKey(t)
	dir, err := os.MkdirTemp("", "fargate") //nolint:usetesting // its sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	images := filepath.Join(dir, "images")
	if err := os.Mkdir(images, 0o700); err != nil {
		t.Fatal(err)
	}
	applets := strings.Fields("sh cat tar base64 stat stty sleep printf env echo id")
	pack := exec.CommandContext(t.Context(), "go", append([]string{"run", "../process/demo/pack", "-name", "tools", "-o", filepath.Join(images, "tools.tar"), busybox}, applets...)...)
	if said, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("make an image: %v: %s", err, said)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	runner, err := process.New(ctx, cli.ProviderInput{
		ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "emulator"}}, Recorder: &record.FakeRecorder{}},
		NodeName:       "emulator", InternalIP: "127.0.0.1",
	}, process.Config{StateDir: filepath.Join(dir, "state"), Images: []string{images}, Isolation: process.IsolationRunc})
	if err != nil {
		t.Fatal(err)
	}
	objects := &emulator.Objects{}
	server := ecs.New(ctx, ecs.Config{
		Fleet: emulator.NewFleet(runner, objects, 0), Keys: map[string]ecs.Key{testKey: {Secret: testSecret}}, LogGroups: []string{logGroup},
	})
	runner.UsePodObjects(objects)
	runner.NotifyPods(ctx, server.Report)
	ended := make(chan error, 1)
	go func() { ended <- runner.RunInBackground(ctx) }()
	listens := httptest.NewServer(server)
	t.Cleanup(func() {
		listens.CloseClientConnections()
		listens.Close()
		removeAll(t, runner) // containers outlive their runner
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		leave(t, dir)
	})
	c := &cloud{Server: server, url: listens.URL}
	conf, err := c.config("home")
	if err != nil {
		t.Fatal(err)
	}
	conf.FilesImage = "tools"
	p, err := newDriver(t.Context(), cli.ProviderInput{NodeName: "node"}, conf, quick)
	if err != nil {
		t.Fatal(err)
	}
	p.kit.UsePodObjects(values{})
	p.kit.UsePodTokens(values{})
	running, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- p.kit.RunInBackground(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(5)),
		Containers: []corev1.Container{{
			Name: "main", Image: "tools",
			Command:      []string{"sh", "-c", "stat -c '%n %a' /keys/key /token/in/token; cat /keys/key; echo; cat /token/in/token; echo; echo $PASSWORD; trap 'exit 7' TERM; while :; do sleep 1; done"},
			Env:          []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "p"}}}},
			VolumeMounts: []corev1.VolumeMount{{Name: "keys", MountPath: "/keys"}, {Name: "token", MountPath: "/token"}},
		}},
		Volumes: []corev1.Volume{
			{Name: "keys", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "keys", DefaultMode: new(int32(0o400))}}},
			{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: new(int32(0o640)), Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "in/token"}},
			}}}},
		},
	}}
	if err := p.kit.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	until(t, p, "web", "running", isRunning)
	want := "/keys/key 400\n/token/in/token 640\n" + canary + "-file\n" + canary + "-token\n" + canary + "\n"
	lines, err := p.kit.GetContainerLogs(t.Context(), "shop", "web", "main", api.ContainerLogOpts{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer lines.Close()
	text, part := "", make([]byte, 1024)
	for len(text) < len(want) {
		n, err := lines.Read(part)
		if text += string(part[:n]); err != nil {
			break
		}
	}
	if text != want {
		t.Fatalf("the container shows %q, want %q", text, want)
	}
	for name, e := range map[string]struct {
		command []string
		out     string
		code    int
	}{
		"a code":          {[]string{"sh", "-c", "echo out; echo err >&2; exit 3"}, "out\nerr\n", 3},
		"a file is fixed": {[]string{"sh", "-c", "{ echo x >/keys/key; } 2>/dev/null || echo refused"}, "refused\n", 0},
		"as it is quoted": {[]string{"printf", "%s|", "it's", "$HOME"}, "it's|$HOME|", 0},
	} {
		who := &caller{}
		err := p.kit.RunInContainer(t.Context(), "shop", "web", "main", e.command, who)
		var exit utilexec.ExitError
		code := 0
		if errors.As(err, &exit) {
			code = exit.ExitStatus()
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := who.out.String(); got != e.out || code != e.code {
			t.Errorf("%s: got %d with %q, want %d with %q", name, code, got, e.code, e.out)
		}
	}
	if err := p.kit.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	tick := everyMoment(t)
	for {
		if _, err := p.kit.GetPod(t.Context(), "shop", "web"); err != nil {
			break
		}
		tick("the pod is gone")
	}
	for slices.Contains(server.Secrets(), ownName(p.mapping.owner, "uid-web")) {
		tick("the secret of the pod is removed")
	}
	out, _, err := p.client.describe(t.Context(), []string{onlyTask(t, c)})
	if err != nil || len(out) != 1 || out[0].Containers[1].ExitCode == nil || *out[0].Containers[1].ExitCode != 7 {
		said, _ := json.Marshal(out) // for people
		t.Errorf("it ended with %s, %v, want 7", said, err)
	}
}

// removeAll removes all pods of a runner, and waits until they are gone.
func removeAll(t *testing.T, runner nodeutil.Provider) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		pods, err := runner.GetPods(ctx)
		if err == nil && len(pods) == 0 {
			return
		}
		for _, pod := range pods {
			pod = pod.DeepCopy()
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64)
			if failed := runner.DeletePod(ctx, pod); failed != nil && !errdefs.IsNotFound(failed) {
				err = errors.Join(err, failed)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Errorf("%d pods are left: %v", len(pods), err)
			return
		}
	}
}

// leave waits until no process works in a directory. Processes that stay are killed and fail the test.
func leave(t *testing.T, dir string) {
	t.Helper()
	over := time.After(time.Minute)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		left := worksIn(dir)
		if len(left) == 0 {
			return
		}
		select {
		case <-ticker.C:
		case <-over:
			t.Errorf("the processes %v of the test are left in %s", left, dir)
			for _, pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			return
		}
	}
}

// worksIn returns the processes whose working directory is below dir. The children of each process come before
// it.
func worksIn(dir string) (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if at, err := os.Readlink(link); err != nil || !strings.HasPrefix(at, dir+"/") {
			continue
		}
		of := strings.Split(link, "/")[2]
		children, _ := os.ReadFile(filepath.Join("/proc", of, "task", of, "children"))
		for _, pid := range append(strings.Fields(string(children)), of) {
			if n, err := strconv.Atoi(pid); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// onlyTask returns the ARN of the only task of the cloud.
func onlyTask(t *testing.T, c *cloud) string {
	t.Helper()
	p, err := newClient(t.Context(), testConfig(t, func(conf *Config) { conf.Endpoint = c.url }))
	if err != nil {
		t.Fatal(err)
	}
	arns, err := p.stopped(t.Context())
	if err != nil || len(arns) != 1 {
		t.Fatalf("got the tasks %v, %v", arns, err)
	}
	return arns[0]
}
