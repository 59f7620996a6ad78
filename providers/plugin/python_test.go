// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

const pythonExample = "../../examples/plugin-python/"

// pythonWithGRPC returns the interpreter of Debian's gRPC package, or the first one that is found.
func pythonWithGRPC(t *testing.T) string {
	t.Helper()
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.CommandContext(t.Context(), python, "-c", "import grpc, google.protobuf").Run() == nil {
			return python
		}
	}
	t.Skip("no python3 with grpc and protobuf: apt-get install python3-grpcio")
	return ""
}

// startPython starts the example as described in its README.
func startPython(t *testing.T, python, socket, state string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(python, pythonExample+"plugin.py", "--socket", socket, "--state", state)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line := bufio.NewScanner(out); !line.Scan() {
		t.Fatal("the example does not listen")
	}
	return cmd
}

func readPod(t *testing.T) *corev1.Pod {
	t.Helper()
	data, err := os.ReadFile(pythonExample + "pod.yaml")
	p := &corev1.Pod{}
	if err == nil {
		err = yaml.UnmarshalStrict(data, p)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.Namespace, p.UID = "default", "u1"
	return p
}

// runIn runs a command in the container of the example, and returns its output.
func runIn(t *testing.T, p nodeutil.Provider, stdin string, command ...string) string {
	t.Helper()
	c := &console{}
	if stdin != "" {
		c.in = strings.NewReader(stdin)
	}
	err := p.RunInContainer(t.Context(), "default", "hello", "main", command, c)
	return said(c.out.String(), err)
}

func containerID(t *testing.T, p nodeutil.Provider) string {
	t.Helper()
	got, err := p.GetPod(t.Context(), "default", "hello")
	if err != nil {
		t.Fatal(err)
	}
	if s := got.Status.ContainerStatuses; got.UID != "u1" || len(s) != 1 || s[0].State.Running == nil {
		t.Fatalf("the pod does not run: %+v", got.Status)
	}
	return got.Status.ContainerStatuses[0].ContainerID
}

func TestPythonExample(t *testing.T) {
	python := pythonWithGRPC(t)
	dir := shortDir(t)
	cmd := startPython(t, python, dir+"/s", dir+"/state")
	own, err := begun(t, Config{Endpoint: "unix://" + dir + "/s"})
	if err != nil {
		t.Fatal(err)
	}
	last := make(chan corev1.PodStatus, 1000)
	own.notify = func(p *corev1.Pod) { last <- p.Status }
	p := run(t, own)
	for range 2 { // the second request starts nothing
		if err := p.CreatePod(t.Context(), readPod(t)); err != nil {
			t.Fatal(err)
		}
	}
	first := containerID(t, p)
	readLog := func() string {
		l, err := p.GetContainerLogs(t.Context(), "default", "hello", "main", api.ContainerLogOpts{Tail: 10})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		data, err := io.ReadAll(l)
		return said(string(data), err)
	}
	eventually(t, "the log has the greeting, once", func() bool { return readLog() == said("hello from Python\n", nil) })
	if got, want := runIn(t, p, "typed", "sh", "-c", "cat; echo $GREETING; exit 3"), "exit 3"; !strings.Contains(got, want) || !strings.HasPrefix(got, "typedhello from Python\n") {
		t.Errorf("exec: got %q", got)
	}

	followers := make([]io.Closer, 100) // more than a plugin with a few threads can serve
	for i := range followers {
		l, err := p.GetContainerLogs(t.Context(), "default", "hello", "main", api.ContainerLogOpts{Follow: true})
		if err != nil {
			t.Fatal(err)
		}
		followers[i] = l
	}
	if got := runIn(t, p, "", "echo", "still there"); got != said("still there\n", nil) {
		t.Errorf("exec beside %d logs that are followed: got %q", len(followers), got)
	}
	for _, l := range followers {
		_ = l.Close()
	}

	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, "the node is not ready", func() bool { return ping(t, p) != nil })
	noEvidence(t, p)
	startPython(t, python, dir+"/s", dir+"/state")
	eventually(t, "the node is ready", func() bool { return ping(t, p) == nil })
	if got := containerID(t, p); got != first {
		t.Errorf("container after the restart: %s, before: %s", got, first)
	}
	if got := readLog(); got != said("hello from Python\n", nil) {
		t.Errorf("log after the restart: got %q", got)
	}

	if err := p.DeletePod(t.Context(), readPod(t)); err != nil {
		t.Fatal(err)
	}
	for status := range last {
		if s := status.ContainerStatuses; len(s) == 1 && s[0].State.Terminated != nil {
			if code := s[0].State.Terminated.ExitCode; code != 143 {
				t.Errorf("exit code: got %d, want that of SIGTERM", code)
			}
			break
		}
	}
	eventually(t, "it is gone", func() bool {
		_, err := p.GetPod(t.Context(), "default", "hello")
		return errdefs.IsNotFound(err)
	})
	refused := readPod(t)
	refused.Spec.Containers[0].Command = nil
	if err := p.CreatePod(t.Context(), refused); !errdefs.IsInvalidInput(err) {
		t.Errorf("no command: got %v, want invalid input", err)
	}
}
