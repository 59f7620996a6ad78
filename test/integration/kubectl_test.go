// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// user is somebody with kubectl.
type user struct {
	*world
	t *testing.T // of the subtest
}

// TestKubectl uses a node as its users do, through the API server, with the real program.
func TestKubectl(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startProgram("127.0.0.1", w.api.NodeCredentials(t, w.nodeName))
	pod := w.pod("web")
	pod.Spec.Containers[0].Stdin = true
	pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}}
	w.startPod(pod)
	for name, test := range map[string]func(user){
		"logs":         user.logs,
		"logs options": user.logOptions,
		"logs end":     user.logsEnd,
		"exec":         user.exec,
		"attach":       user.attach,
		"port-forward": user.portForward,
		"cp":           user.cp,
	} {
		t.Run(name, func(t *testing.T) { test(user{w, t}) })
	}
}

// TestNodeProxy asks for what the node itself serves.
func TestNodeProxy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startProxied()
	w.startPod(w.pod("web"))
	user{w, t}.raw()
}

// kubectl runs kubectl in the test's namespace and returns its output.
func (u user) kubectl(args ...string) string {
	u.t.Helper()
	stdout, stderr, err := u.api.Kubectl(u.t, u.scoped(args)...)
	if err != nil {
		u.t.Fatalf("kubectl %q: %v: %s", args, err, stderr)
	}
	return stdout
}

// fails runs kubectl, which must fail, and returns its exit code and what it wrote.
func (u user) fails(args ...string) (code int, stdout, stderr string) {
	u.t.Helper()
	stdout, stderr, err := u.api.Kubectl(u.t, u.scoped(args)...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		u.t.Fatalf("kubectl %q: got %v, want an exit code; it wrote %q and %q", args, err, stdout, stderr)
	}
	return exit.ExitCode(), stdout, stderr
}

// typing runs kubectl with the input and returns its output.
func (u user) typing(input string, args ...string) string {
	u.t.Helper()
	var stderr strings.Builder
	cmd := u.api.KubectlCommand(u.t, u.scoped(args)...)
	cmd.Stdin, cmd.Stderr = strings.NewReader(input), &stderr
	out, err := cmd.Output()
	if err != nil {
		u.t.Fatalf("kubectl %q: %v: %s", args, err, &stderr)
	}
	return string(out)
}

// reading starts kubectl, which goes on until the returned function is called, and returns
// a scanner of its output lines.
func (u user) reading(args ...string) (lines *bufio.Scanner, end func()) {
	u.t.Helper()
	cmd := u.api.KubectlCommand(u.t, u.scoped(args)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		u.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		u.t.Fatalf("kubectl %q: %v", args, err)
	}
	return bufio.NewScanner(out), func() {
		_ = cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // it was killed
	}
}

func (u user) scoped(args []string) []string {
	return append([]string{"--namespace=" + u.namespace}, args...)
}
