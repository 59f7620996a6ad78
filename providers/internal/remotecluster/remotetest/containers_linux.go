// SPDX-License-Identifier: Apache-2.0

package remotetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testlog"
)

// ContractImage creates an archive of the image "contract", with the program of the contract, in a new directory.
func ContractImage(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	program := filepath.Join(dir, "contractprogram")
	compileProgram(t, "build", "-o", program, "github.com/virtual-kubelet/virtual-kubelet/providertest/program/contractprogram")
	compileProgram(t, "run", "../process/demo/pack", "-name", "contract", "-o", program+".tar", program)
	return dir
}

// demoImage creates an archive of the image "demo", like `make up`.
func demoImage(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	program, shell := filepath.Join(dir, "demo"), filepath.Join(dir, "sh")
	compileProgram(t, "build", "-o", program, "../process/demo")
	compileProgram(t, "build", "-C", "../process/demo/shell", "-o", shell, ".")
	compileProgram(t, "run", "../process/demo/pack", "-name", "demo", "-sh", shell, "-o", program+".tar", program, "cat", "hello", "ls", "size", "sleep", "tar")
	return dir
}

// compileProgram runs go without cgo.
func compileProgram(t *testing.T, args ...string) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", args...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v: %s", args, err, out)
	}
}

// StartContainers starts the built program with the provider process as the node of a remote cluster. The node
// has the images of a directory, and runs real containers with runc. The containers belong to another user, so
// the test is skipped without root.
func StartContainers(t *testing.T, api *testapi.API, images string) *Worker {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("containers of another user than this one need root: run the test as root, as CI does")
	}
	w := &Worker{API: api, Name: api.NodeName(t)}
	startProgram(t, api, w.Name, api.NodeCredentials(t, w.Name), nil, "process",
		"apiVersion: process.virtual-kubelet.io/v1alpha1\nkind: ProcessProviderConfiguration\nisolation: runc\nstateDir: "+filepath.Join(t.TempDir(), "state")+"\nimages: ["+images+"]\n")
	label := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, Label, w.Name) // a patch, because the node writes the object, too
	if _, err := api.Client.CoreV1().Nodes().Patch(t.Context(), w.Name, types.MergePatchType, []byte(label), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	return w
}

// startProgram runs the built program as a node until the test ends, and waits until it is Ready.
func startProgram(t *testing.T, api *testapi.API, name string, credentials testapi.NodeCredentials, env []string, provider, config string) {
	t.Helper()
	binary := os.Getenv("VK_BIN")
	if binary == "" {
		binary, _ = filepath.Abs("../../bin/virtual-kubelet") // Abs fails only if the working directory is unknown
	}
	if _, err := os.Stat(binary); err != nil {
		if os.Getenv("VK_REQUIRE_TESTAPI") == "1" {
			t.Fatal(err)
		}
		t.Skipf("this test needs the binary virtual-kubelet: %v; build it, or name one in VK_BIN", err)
	}
	file := filepath.Join(t.TempDir(), provider+".yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	said := &testlog.Buffer{}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary, "--provider="+provider, "--provider-config="+file, "--nodename="+name, "--kubeconfig="+credentials.Kubeconfig,
		"--node-ip=127.0.0.1", "--listen-address=127.0.0.1", "--port=0", "--disable-taint", "--drain-on-exit", "--drain-timeout=10s", "--drain-critical-timeout=5s",
		"--tls-cert-file="+credentials.CertFile, "--tls-private-key-file="+credentials.KeyFile, "--client-ca-file="+credentials.CAFile)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // its result does not matter
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		if t.Failed() {
			t.Logf("the node with provider %s said:\n%s", provider, said.Tail())
		}
	})
	Until(t, "the node with provider "+provider+" is Ready", func() (bool, string) {
		select {
		case <-ended:
			t.Fatalf("the node with provider %s has ended", provider)
		default:
		}
		n, err := api.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status == corev1.ConditionTrue, c.Message
			}
		}
		return false, "it has no condition"
	})
}
