// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/containerdtest"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testlog"
	"github.com/virtual-kubelet/virtual-kubelet/test/internal/testnode"
)

// patience is the time limit for every wait, on a machine that may be busy with other work. A step here takes
// seconds.
const patience = 3 * time.Minute

// world is the environment of one test: a node whose daemon the test may kill and start again.
type world struct {
	*testing.T
	api       *testapi.API
	runtime   *containerdtest.Containerd
	namespace string
	node      string
	args      []string
	daemon    *exec.Cmd
	said      *testlog.Buffer
}

// newWorld starts a node.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, runtime: runtimeOf(t), api: testapi.Start(t), said: &testlog.Buffer{}}
	w.namespace, w.node = w.api.Namespace(t), w.api.NodeName(t)
	credentials := w.api.NodeCredentials(t, w.node)
	w.args = []string{
		"--nodename=" + w.node, "--provider=cri", "--provider-config=" + w.config(), "--disable-taint",
		"--kubeconfig=" + credentials.Kubeconfig, "--client-ca-file=" + credentials.CAFile,
		"--tls-cert-file=" + credentials.CertFile, "--tls-private-key-file=" + credentials.KeyFile,
		"--node-ip=127.0.0.1", "--listen-address=127.0.0.1", "--port=0",
	}
	t.Cleanup(func() {
		w.kill()
		if t.Failed() {
			t.Logf("virtual-kubelet said:\n%s", w.said.Tail())
		}
	})
	w.start()
	t.Cleanup(w.empty)
	return w
}

// config writes the configuration of the node's provider.
func (w *world) config() string {
	w.Helper()
	root := filepath.Join(w.runtime.Dir, w.node)
	path := filepath.Join(w.TempDir(), "cri.yaml")
	content := fmt.Sprintf(`apiVersion: cri.virtual-kubelet.io/v1alpha1
kind: CRIProviderConfiguration
endpoint: %s
root: %s/pods
logRoot: %s/logs
cgroupParent: %s
capacity: {cpu: 8, memory: 8Gi, pods: 110}
imageGC: {highThresholdPercent: 100}
`, w.runtime.Endpoint(), root, root, w.runtime.CgroupParent)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.Fatal(err)
	}
	return path
}

// start runs the daemon and waits until the node is ready.
func (w *world) start() {
	w.Helper()
	w.daemon = exec.Command(testnode.Program(w.T), w.args...)
	w.daemon.Stdout, w.daemon.Stderr = w.said, w.said
	if err := w.daemon.Start(); err != nil {
		w.Fatalf("start virtual-kubelet: %v", err)
	}
	w.await("the node is ready", func() (bool, string) {
		n, err := w.api.Client.CoreV1().Nodes().Get(w.Context(), w.node, metav1.GetOptions{})
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

// kill kills the daemon. Its containers keep running.
func (w *world) kill() {
	if w.daemon != nil {
		_ = w.daemon.Process.Signal(syscall.SIGKILL) // an error means that it has ended
		_ = w.daemon.Wait()                          // it was killed
		w.daemon = nil
	}
}

// empty removes the test's pods while the daemon can still remove their containers from the machine.
func (w *world) empty() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := w.kubectl(ctx, "delete", "all,jobs,cronjobs", "--all", "--wait=false"); err != nil {
		w.Errorf("clean up: %v", err)
	}
	for {
		if _, err := w.kubectl(ctx, "delete", "pods", "--all", "--grace-period=1", "--timeout=1m"); err != nil {
			w.Errorf("clean up: %v", err)
			return
		}
		left, err := w.kubectl(ctx, "get", "pods", "-o", "name")
		if err != nil || left == "" {
			return
		}
	}
}

// kubectl runs kubectl in the test's namespace and returns its output.
func (w *world) kubectl(ctx context.Context, args ...string) (string, error) {
	var out, errs bytes.Buffer
	named := w.api.KubectlCommand(w.T, append([]string{"--namespace=" + w.namespace}, args...)...)
	cmd := exec.CommandContext(ctx, named.Path, args...)
	cmd.Args, cmd.Env = named.Args, named.Env
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}

// do runs kubectl, which must succeed, and returns its output.
func (w *world) do(args ...string) string {
	w.Helper()
	out, err := w.kubectl(w.Context(), args...)
	if err != nil {
		w.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// await returns when done returns true. If that takes too long, await fails the test with the description that
// done returned.
func (w *world) await(what string, done func() (bool, string)) {
	w.Helper()
	deadline := time.After(patience)
	for {
		is, saw := done()
		if is {
			return
		}
		select {
		case <-deadline:
			w.Fatalf("waited %v until %s; last seen: %s", patience, what, saw)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
