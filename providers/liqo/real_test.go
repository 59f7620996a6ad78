// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testlog"
)

// realDir returns the directory that `make liqo` fills with Liqo's own program and definitions. With "", tests
// use the controller in shadows_test.go.
func realDir() string { return os.Getenv("VK_LIQO") }

// startReal runs Liqo's controllers on a cluster until the test ends.
func startReal(t *testing.T, api *testapi.API) {
	t.Helper()
	said := &testlog.Buffer{}
	cmd := exec.Command(filepath.Join(realDir(), "liqo-controller-manager"), "--networking-enabled=false", "--authentication-enabled=false",
		"--offloading-enabled=true", "--cluster-id=foreign", "--default-limits-enforcement=None", "--metrics-address=127.0.0.1:0",
		"--health-probe-address=127.0.0.1:0")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+api.KubeconfigPath)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it was told to end
		if t.Failed() {
			t.Logf("Liqo's controllers said:\n%s", said.Tail())
		}
	})
}

// realDefinitions returns the definitions of Liqo's kinds.
func realDefinitions(t *testing.T) (texts []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(realDir(), "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions in %s/crds (%v): run make liqo", realDir(), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}
