// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerdtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// RequireVariable is the environment variable that makes tests fail instead of skipping them, if it is 1.
const RequireVariable = "VK_REQUIRE_CONTAINERD"

// needed are the programs that a containerd of this package calls, and the Debian packages that have them.
var needed = [][2]string{
	{"containerd", "containerd"}, {"containerd-shim-runc-v2", "containerd"}, {"ctr", "containerd"},
	{"runc", "runc"}, {"ip", "iproute2"}, {"iptables", "iptables"},
}

// pluginFolders are the folders of network plugins, by distribution.
var pluginFolders = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// Missing returns the reason why no containerd can be started here; nil if there is none.
func Missing() error {
	if os.Geteuid() != 0 {
		return errors.New("containerd needs root")
	}
	var packages []string
	for _, n := range needed {
		if _, err := exec.LookPath(n[0]); err != nil && !strings.Contains(strings.Join(packages, " "), n[1]) {
			packages = append(packages, n[1])
		}
	}
	if _, err := pluginFolder(); err != nil {
		packages = append(packages, "containernetworking-plugins")
	}
	if len(packages) > 0 {
		return fmt.Errorf("not installed: %s", strings.Join(packages, ", "))
	}
	return nil
}

// pluginFolder returns the folder of the network plugins.
func pluginFolder() (string, error) {
	for _, dir := range pluginFolders {
		if _, err := os.Stat(filepath.Join(dir, "bridge")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no network plugin called bridge in %s", strings.Join(pluginFolders, ", "))
}

// Start starts a containerd for a test, as New does, and closes it at the end of the test. Where no containerd
// can run, it skips the test.
func Start(t testing.TB, options Options) *Containerd {
	t.Helper()
	if err := Missing(); err != nil {
		if os.Getenv(RequireVariable) == "1" {
			t.Fatalf("this test needs a containerd of its own: %v", err)
		}
		t.Skipf("this test needs a containerd of its own: %v", err)
	}
	c, err := New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("containerd said:\n%s", c.Said())
		}
	})
	return c
}
