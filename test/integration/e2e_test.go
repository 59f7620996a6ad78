// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/test/e2e"
)

// TestEndToEndSuite runs the suite for providers against the provider mock.
func TestEndToEndSuite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startProxied()
	w.endToEnd()
}

// TestEndToEndSuiteWithContainers runs the same suite against the provider process.
func TestEndToEndSuiteWithContainers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startProxied("--provider=process", "--provider-config="+w.processConfig())
	w.endToEnd()
}

func (w *world) endToEnd() {
	e2e.NewEndToEndTestSuite(e2e.EndToEndTestSuiteConfig{
		Kubeconfig: w.api.KubeconfigPath,
		Namespace:  w.namespace,
		NodeName:   w.nodeName,
	}).Run(w.T)
}

// processConfig writes a configuration of the provider process. Its image nginx has a program that runs until it is stopped, which the
// suite needs. Each folder in programs becomes one more image, named after the folder.
func (w *world) processConfig(programs ...string) string {
	w.Helper()
	dir := w.TempDir()
	program, images, config := filepath.Join(dir, "demo"), filepath.Join(dir, "images"), filepath.Join(dir, "process.yaml")
	if err := os.Mkdir(images, 0o755); err != nil {
		w.Fatal(err)
	}
	calls := [][]string{
		{"build", "-C", "../../providers", "-o", program, "./process/demo"},
		{"run", "-C", "../../providers", "./process/demo/pack", "-name", "nginx", "-o", filepath.Join(images, "nginx.tar"), program},
	}
	for _, folder := range programs {
		name := filepath.Base(folder)
		built := filepath.Join(dir, name)
		calls = append(calls, []string{"build", "-o", built, folder},
			[]string{"run", "-C", "../../providers", "./process/demo/pack", "-name", name, "-o", filepath.Join(images, name+".tar"), built})
	}
	for _, args := range calls {
		cmd := exec.CommandContext(w.Context(), "go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			w.Fatalf("go %v: %v: %s", args, err, out)
		}
	}
	text := fmt.Sprintf("apiVersion: process.virtual-kubelet.io/v1alpha1\nkind: ProcessProviderConfiguration\nstateDir: %s\nimages: [%s]\n",
		filepath.Join(dir, "state"), images)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	return config
}
