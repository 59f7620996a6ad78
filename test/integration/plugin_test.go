// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const pythonExample = "../../examples/plugin-python/"

// pythonPlugin starts the example as its README describes. The returned function kills it as kill -9 does.
func (w *world) pythonPlugin(python, dir string) (kill func()) {
	w.Helper()
	cmd := exec.Command(python, pythonExample+"plugin.py", "--socket", filepath.Join(dir, "s"), "--state", filepath.Join(dir, "state"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill() // an error means that it has ended
		_ = cmd.Wait()
	}
	w.Cleanup(kill)
	if line := bufio.NewScanner(out); !line.Scan() {
		w.Fatal("the example does not listen")
	}
	return kill
}

// TestPythonPlugin uses the provider in Python as its users do, with the real program. The provider is killed,
// and the pod stays the same.
func TestPythonPlugin(t *testing.T) {
	t.Parallel()
	python := "/usr/bin/python3" // from Debian's package
	if err := exec.CommandContext(t.Context(), python, "-c", "import grpc, google.protobuf").Run(); err != nil {
		t.Skipf("no python3 with grpc and protobuf: %v: apt-get install python3-grpcio", err)
	}
	w := newWorld(t)
	dir, err := os.MkdirTemp("", "vkp") //nolint:usetesting // the path of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	kill := w.pythonPlugin(python, dir)
	config := filepath.Join(dir, "plugin.yaml")
	given, err := os.ReadFile(pythonExample + "plugin.yaml")
	if err == nil {
		err = os.WriteFile(config, []byte(strings.ReplaceAll(string(given), "/tmp/plugin.sock", dir+"/s")), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.startProgram("127.0.0.1", w.api.NodeCredentials(t, w.nodeName), "--provider=plugin", "--provider-config="+config)

	pod := &corev1.Pod{}
	data, err := os.ReadFile(pythonExample + "pod.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(data, pod)
	}
	if err != nil {
		t.Fatal(err)
	}
	pod.Namespace, pod.Spec.NodeName = w.namespace, w.nodeName
	first := w.startPod(pod)
	defer func() { // its process goes with it
		w.remove(pod.Name, metav1.DeleteOptions{})
		w.awaitGone(pod.Name, first.UID)
	}()
	u := user{world: w, t: t}
	answers := func() {
		t.Helper()
		// A running container may not have written anything yet.
		late := time.After(patience)
		for got := u.kubectl("logs", pod.Name); got != "hello from Python\n"; got = u.kubectl("logs", pod.Name) {
			select {
			case <-late:
				t.Fatalf("kubectl logs: got %q", got)
			default:
			}
		}
		if got := u.kubectl("exec", pod.Name, "--", "sh", "-c", "echo $GREETING"); got != "hello from Python\n" {
			t.Errorf("kubectl exec: got %q", got)
		}
	}
	answers()

	kill()
	w.awaitNode("says that the plugin is gone", func(n *corev1.Node) bool {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, "plugin plugin-python at unix://") {
				return true
			}
		}
		return false
	})
	w.pythonPlugin(python, dir)
	w.awaitNode("is ready", nodeReady)
	second := w.awaitPod(pod.Name, "runs", running)
	if was, is := first.Status.ContainerStatuses[0], second.Status.ContainerStatuses[0]; second.UID != first.UID || is.RestartCount != 0 || is.ContainerID != was.ContainerID {
		t.Errorf("the pod after the restart: UID %s, %d restarts, container %s; before: %s, container %s", second.UID, is.RestartCount, is.ContainerID, first.UID, was.ContainerID)
	}
	answers()
}
