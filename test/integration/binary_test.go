// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testapi"
)

// stopTime is how long the program may take to end after SIGTERM.
const stopTime = 5 * time.Second

// program returns the path of the binary virtual-kubelet: $VK_BIN, else that of the build.
func program(t *testing.T) string {
	t.Helper()
	path := os.Getenv("VK_BIN")
	if path == "" {
		path = filepath.Join("..", "..", "bin", "virtual-kubelet")
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	switch {
	case err == nil:
		return path
	case os.Getenv("VK_REQUIRE_TESTAPI") == "1":
		t.Fatalf("this test needs the binary virtual-kubelet: %v", err)
	default:
		t.Skipf("this test needs the binary virtual-kubelet: %v; build it, or name one in VK_BIN", err)
	}
	return ""
}

// child is a run of virtual-kubelet.
type child struct {
	*world
	cmd   *exec.Cmd
	said  *lockedBuffer
	ended bool
}

// startProgram runs virtual-kubelet with the provider mock and the identity of a node. The node's server
// listens at the address. The program ends with the test, within stopTime. args are further settings.
func (w *world) startProgram(address string, credentials testapi.NodeCredentials, args ...string) *child {
	w.Helper()
	c := &child{world: w, said: &lockedBuffer{}}
	c.cmd = exec.Command(program(w.T), append([]string{
		"--nodename=" + w.nodeName, "--provider=mock",
		"--kubeconfig=" + credentials.Kubeconfig,
		"--tls-cert-file=" + credentials.CertFile, "--tls-private-key-file=" + credentials.KeyFile,
		"--client-ca-file=" + credentials.CAFile,
		"--node-ip=" + address, "--listen-address=" + address, "--port=0",
	}, args...)...)
	c.cmd.Env = withoutSettings(os.Environ())
	c.cmd.Stdout, c.cmd.Stderr = c.said, c.said
	if err := c.cmd.Start(); err != nil {
		w.Fatalf("start virtual-kubelet: %v", err)
	}
	w.Cleanup(c.end)
	w.awaitNode("is ready", nodeReady)
	return c
}

// end stops the program as a system would.
func (c *child) end() {
	if c.ended {
		return
	}
	began := time.Now()
	_ = c.cmd.Process.Signal(syscall.SIGTERM)                             // an error means that it has ended, which Wait tells
	kill := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() }) // so that the test ends
	defer kill.Stop()
	if err := c.cmd.Wait(); err != nil {
		c.Errorf("virtual-kubelet ended: %v", err)
	}
	if took := time.Since(began); took > stopTime {
		c.Errorf("virtual-kubelet took %v to stop, want at most %v", took, stopTime)
	}
	if c.Failed() {
		c.Logf("virtual-kubelet said:\n%s", c.said.tail())
	}
}

// kill ends the program without a chance to do anything.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // an error means that it has ended
	_ = c.cmd.Wait()         // it was killed
	c.ended = true
}

// startProxied is startProgram at an address to which the API server sends requests for
// nodes/proxy: not a loopback one.
func (w *world) startProxied() {
	w.Helper()
	if !inNamespace() {
		w.Skip("the tests may not make a network namespace here, and to the loopback addresses outside of one the API server does not proxy; run them as root, with util-linux and iproute2 installed")
	}
	w.startProgram(nodeAddress, w.api.NodeCredentials(w.T, w.nodeName, nodeAddress))
}

// withoutSettings drops the variables that would change the program's settings.
func withoutSettings(env []string) (out []string) {
	for _, v := range env {
		if !strings.HasPrefix(v, "KUBE") && !strings.HasPrefix(v, "VK") && !strings.HasPrefix(v, "APISERVER_") {
			out = append(out, v)
		}
	}
	return out
}
