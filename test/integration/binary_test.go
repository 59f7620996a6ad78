// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testlog"
	"github.com/virtual-kubelet/virtual-kubelet/test/internal/testnode"
)

// stopTime is the time limit for the end of the program after SIGTERM.
const stopTime = 5 * time.Second

// child is a running virtual-kubelet.
type child struct {
	*world
	cmd   *exec.Cmd
	said  *testlog.Buffer
	ended bool
}

// startProgram runs virtual-kubelet with the provider mock and the identity of a node. The node's server
// listens at the address. The program ends with the test, within stopTime. args are further settings.
func (w *world) startProgram(address string, credentials testapi.NodeCredentials, args ...string) *child {
	w.Helper()
	c := w.runProgram(append([]string{
		"--nodename=" + w.nodeName, "--provider=mock",
		"--kubeconfig=" + credentials.Kubeconfig,
		"--tls-cert-file=" + credentials.CertFile, "--tls-private-key-file=" + credentials.KeyFile,
		"--client-ca-file=" + credentials.CAFile,
		"--node-ip=" + address, "--listen-address=" + address, "--port=0",
	}, args...)...)
	w.awaitNode("is ready", nodeReady)
	return c
}

// runProgram runs virtual-kubelet with args and no other setting. It ends with the test, within stopTime.
func (w *world) runProgram(args ...string) *child {
	w.Helper()
	c := &child{world: w, said: &testlog.Buffer{}}
	c.cmd = exec.Command(testnode.Program(w.T), args...)
	c.cmd.Env = withoutSettings(os.Environ())
	c.cmd.Stdout, c.cmd.Stderr = c.said, c.said
	if err := c.cmd.Start(); err != nil {
		w.Fatalf("start virtual-kubelet: %v", err)
	}
	w.Cleanup(c.end)
	return c
}

// end stops the program with SIGTERM, as an operating system does.
func (c *child) end() {
	if c.ended {
		return
	}
	c.ended = true
	began := time.Now()
	_ = c.cmd.Process.Signal(syscall.SIGTERM)                             // an error means that it has ended, as Wait reports
	kill := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() }) // so that the test ends
	defer kill.Stop()
	if err := c.cmd.Wait(); err != nil {
		c.Errorf("virtual-kubelet ended: %v", err)
	}
	if took := time.Since(began); took > stopTime {
		c.Errorf("virtual-kubelet took %v to stop, want at most %v", took, stopTime)
	}
	if c.Failed() {
		c.Logf("virtual-kubelet said:\n%s", c.said.Tail())
	}
}

// kill kills the program with SIGKILL.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // an error means that it has ended
	_ = c.cmd.Wait()         // it was killed
	c.ended = true
}

// startProxied is startProgram at an address other than loopback, because the API server does not send requests
// for nodes/proxy to a loopback address.
func (w *world) startProxied(args ...string) {
	w.Helper()
	if !inNamespace() {
		w.Skip("the tests may not make a network namespace here, and to the loopback addresses outside of one the API server does not proxy; run them as root, with util-linux and iproute2 installed")
	}
	w.startProgram(nodeAddress, w.api.NodeCredentials(w.T, w.nodeName, nodeAddress), args...)
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
