// SPDX-License-Identifier: Apache-2.0

package testapi

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	kubeconfigVariable = "VK_TEST_KUBECONFIG"
	requireVariable    = "VK_REQUIRE_TESTAPI"
	binaryVariable     = "DEVCLUSTER_BIN"

	modulePath = "github.com/virtual-kubelet/virtual-kubelet"
)

// requireBinary returns devcluster's path, or ends the test.
func requireBinary(t testing.TB) string {
	t.Helper()
	binary, err := findBinary()
	if err == nil {
		return binary
	}
	if os.Getenv(requireVariable) == "1" {
		t.Fatalf("this test needs an API server: %v", err)
	}
	t.Skipf("this test needs an API server: %v; build it with: make bin/devcluster", err)
	return ""
}

func findBinary() (string, error) {
	path := os.Getenv(binaryVariable)
	if path == "" {
		root, err := moduleRoot()
		if err != nil {
			return "", err
		}
		path = filepath.Join(root, "bin", "devcluster")
	}
	if info, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("find devcluster: %w", err)
	} else if info.IsDir() {
		return "", fmt.Errorf("find devcluster: %s is a directory", path)
	}
	return path, nil
}

// moduleRoot returns the nearest directory above this one with this module; a test runs in the directory of its
// package, which may be in a nested module.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && declaresModule(string(data), modulePath) {
			return dir, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("find the module: %w", err)
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the module: no go.mod of %s above %s", modulePath, start)
		}
	}
}

func declaresModule(gomod, module string) bool {
	for line := range strings.Lines(gomod) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "module" {
			return fields[1] == module
		}
	}
	return false
}
