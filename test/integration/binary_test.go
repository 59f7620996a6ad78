// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

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

// startProgram runs virtual-kubelet with the provider mock and the identity of a node, waits until its
// node is ready, and returns that. The node's server listens at the address. The program ends with the test, within stopTime.
func (w *world) startProgram(address string, credentials testapi.NodeCredentials) *corev1.Node {
	w.Helper()
	said := &lockedBuffer{}
	cmd := exec.Command(program(w.T),
		"--nodename="+w.nodeName, "--provider=mock",
		"--kubeconfig="+credentials.Kubeconfig,
		"--tls-cert-file="+credentials.CertFile, "--tls-private-key-file="+credentials.KeyFile,
		"--client-ca-file="+credentials.CAFile,
		"--node-ip="+address, "--listen-address="+address, "--port=0",
	)
	cmd.Env = withoutSettings(os.Environ())
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		w.Fatalf("start virtual-kubelet: %v", err)
	}
	w.Cleanup(func() {
		began := time.Now()
		_ = cmd.Process.Signal(syscall.SIGTERM)                             // an error means that it has ended, which Wait tells
		kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }) // so that the test ends
		if err := cmd.Wait(); err != nil {
			w.Errorf("virtual-kubelet ended: %v", err)
		}
		kill.Stop()
		if took := time.Since(began); took > stopTime {
			w.Errorf("virtual-kubelet took %v to stop, want at most %v", took, stopTime)
		}
		if w.Failed() {
			w.Logf("virtual-kubelet said:\n%s", said.tail())
		}
	})
	return w.awaitNode("is ready", nodeReady)
}

// startProxied is startProgram at an address to which the API server sends requests for
// nodes/proxy: not a loopback one.
func (w *world) startProxied() {
	w.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		w.Fatal(err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			address := n.IP.String()
			w.startProgram(address, w.api.NodeCredentials(w.T, w.nodeName, address))
			return
		}
	}
	w.Skip("this machine has only loopback addresses, to which the API server does not proxy")
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
