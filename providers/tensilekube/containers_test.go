// SPDX-License-Identifier: Apache-2.0

//go:build linux

package tensilekube

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testlog"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestContractInContainers runs the checks that need containers on a lower cluster whose node is the built program with provider
// process: a closed loop without a kubelet.
func TestContractInContainers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("containers of another user than this one need root: run the test as root, as CI does")
	}
	w := startContainers(t, testapi.Start(t))
	command := func(p program.Program) ([]string, error) {
		return append([]string{"/bin/contractprogram"}, p.Args()...), nil
	}
	providertest.Run(t, providertest.Harness{
		Backend: w.backend,
		Container: func(_ *corev1.Pod, c *corev1.Container, p program.Program) error {
			c.Image, c.Command, c.Args, c.ImagePullPolicy = "contract", []string{"/bin/contractprogram"}, p.Args(), corev1.PullIfNotPresent
			return nil
		},
		Command: command, Patience: 2 * time.Minute, Every: 50 * time.Millisecond, Parallel: 4,
		Only:   regexp.MustCompile(`^settings/|^probes/network$|^creation/(runs|init-order|sidecar)$|^(environment|exec|files|hooks|logs|port-forward)/`),
		Except: map[string]string{"settings/stop-signal": "the API server of the lower cluster drops the field without the feature gate ContainerStopSignals"},
	})
}

// startContainers starts a node of provider process, with the image of the contract.
func startContainers(t *testing.T, api *testapi.API) *worker {
	t.Helper()
	binary := os.Getenv("VK_BIN")
	if binary == "" {
		binary, _ = filepath.Abs("../../bin/virtual-kubelet") // of a path that is not empty: never fails
	}
	if _, err := os.Stat(binary); err != nil {
		if os.Getenv("VK_REQUIRE_TESTAPI") == "1" {
			t.Fatal(err)
		}
		t.Skipf("this test needs the binary virtual-kubelet: %v; build it, or name one in VK_BIN", err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "contractprogram")
	for _, args := range [][]string{
		{"build", "-o", program, "github.com/virtual-kubelet/virtual-kubelet/providertest/program/contractprogram"},
		{"run", "../process/demo/pack", "-name", "contract", "-o", program + ".tar", program},
	} {
		build := exec.CommandContext(t.Context(), "go", args...)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v: %s", args, err, out)
		}
	}
	w := &worker{api: api, name: api.NodeName(t)}
	credentials := api.NodeCredentials(t, w.name)
	config := fmt.Sprintf("apiVersion: process.virtual-kubelet.io/v1alpha1\nkind: ProcessProviderConfiguration\nisolation: runc\nstateDir: %s\nimages: [%s]\n",
		filepath.Join(dir, "state"), dir)
	if err := os.WriteFile(filepath.Join(dir, "process.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	said := &testlog.Buffer{}
	cmd := exec.Command(binary, "--provider=process", "--provider-config="+filepath.Join(dir, "process.yaml"), "--nodename="+w.name,
		"--kubeconfig="+credentials.Kubeconfig, "--node-ip=127.0.0.1", "--listen-address=127.0.0.1", "--port=0", "--disable-taint", "--drain-on-exit", "--drain-timeout=10s", "--drain-critical-timeout=5s",
		"--tls-cert-file="+credentials.CertFile, "--tls-private-key-file="+credentials.KeyFile, "--client-ca-file="+credentials.CAFile)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it was told to end
		if t.Failed() {
			t.Logf("the node of the lower cluster said:\n%s", said.Tail())
		}
	})
	w.awaitNode(t)
	return w
}

// awaitNode waits until the node is Ready, and labels it for the pods of the test.
func (w *worker) awaitNode(t *testing.T) {
	t.Helper()
	nodes := w.api.Client.CoreV1().Nodes()
	u := &upper{T: t}
	u.until("the node of the lower cluster is Ready", func() (bool, string) {
		n, err := nodes.Get(t.Context(), w.name, metav1.GetOptions{})
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
	n, err := nodes.Get(t.Context(), w.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.Labels[label] = w.name
	if _, err := nodes.Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
