// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// user is a user of kubectl.
type user struct {
	*world
	t   *testing.T // of the subtest
	env []string   // settings of kubectl
}

// TestKubectl uses a node as its users do, through the API server, with the real program.
func TestKubectl(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.startProgram("127.0.0.1", w.api.NodeCredentials(t, w.nodeName), "--log-format=json")
	if declared := w.awaitNode("is ready", nodeReady).Status.DeclaredFeatures; !slices.Contains(declared, "ExtendWebSocketsToKubelet") {
		t.Errorf("the node declares %q: the API server does not hand WebSockets to it", declared)
	}
	pod := w.pod("web")
	pod.Spec.Containers[0].Stdin = true
	pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}}
	uid := w.startPod(pod).UID
	streams := map[string]func(user){
		"exec": user.exec, "attach": user.attach, "port-forward": user.portForward, "exec of many bytes": user.copyBytes,
		"exec in a terminal": user.terminal, "debug": user.debug,
	}
	for protocol, env := range map[string][]string{
		"websocket": {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS=true", "KUBECTL_PORT_FORWARD_WEBSOCKETS=true"},
		"spdy":      {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false", "KUBECTL_PORT_FORWARD_WEBSOCKETS=false"},
	} {
		for name, test := range streams {
			t.Run(name+" over "+protocol, func(t *testing.T) { test(user{w, t, env}) })
		}
	}
	node.awaitRecords("web", uid)
	t.Run("logs", func(t *testing.T) { user{world: w, t: t}.logs() })
	t.Run("logs options", func(t *testing.T) { user{world: w, t: t}.logOptions() })
	t.Run("logs end", func(t *testing.T) { user{world: w, t: t}.logsEnd() })
}

// TestNodeProxy requests the paths that the node itself serves.
func TestNodeProxy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startProxied()
	w.startPod(w.pod("web"))
	user{world: w, t: t}.raw()
}

// command returns a kubectl command in the test's namespace.
func (u user) command(args []string) *exec.Cmd {
	u.t.Helper()
	cmd := u.api.KubectlCommand(u.t, append([]string{"--namespace=" + u.namespace}, args...)...)
	cmd.Env = append(cmd.Env, u.env...)
	return cmd
}

// run runs kubectl with the input.
func (u user) run(input string, args []string) (stdout, stderr string, err error) {
	u.t.Helper()
	var out, errs bytes.Buffer
	cmd := u.command(args)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// kubectl runs kubectl and returns its output.
func (u user) kubectl(args ...string) string {
	u.t.Helper()
	return u.typing("", args...)
}

// typing runs kubectl with input and returns its output.
func (u user) typing(input string, args ...string) string {
	u.t.Helper()
	stdout, stderr, err := u.run(input, args)
	if err != nil {
		u.t.Fatalf("kubectl %q: %v: %s", args, err, stderr)
	}
	return stdout
}

// fails runs kubectl, expects it to fail, and returns its exit code and output.
func (u user) fails(args ...string) (code int, stdout, stderr string) {
	u.t.Helper()
	stdout, stderr, err := u.run("", args)
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		u.t.Fatalf("kubectl %q: got %v, want an exit code; it wrote %q and %q", args, err, stdout, stderr)
	}
	return exit.ExitCode(), stdout, stderr
}

// reading starts kubectl and returns a scanner of its output lines. kubectl runs until the caller calls end.
func (u user) reading(args ...string) (lines *bufio.Scanner, end func()) {
	u.t.Helper()
	cmd := u.command(args)
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
