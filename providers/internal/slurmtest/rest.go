// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurmtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// restUser runs slurmrestd, because slurmrestd refuses to be root.
const restUser = 1

// jwtPlugins are the usual places of the plugin for tokens. Without the plugin slurmctld doesn't start.
var jwtPlugins = []string{"/usr/lib/*/slurm*/auth_jwt.so", "/usr/lib*/slurm*/auth_jwt.so", "/usr/local/lib/slurm*/auth_jwt.so"}

// findREST returns an error if slurmrestd or the plugin for its tokens is missing.
func findREST() error {
	if _, err := findProgram("slurmrestd"); err != nil {
		return errors.New("slurmrestd is not installed: apt-get install slurmrestd slurm-wlm-jwt-plugin")
	}
	for _, pattern := range jwtPlugins {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return nil
		}
	}
	return errors.New("the plugin auth_jwt.so of Slurm is not installed: apt-get install slurm-wlm-jwt-plugin")
}

// StartREST starts slurmrestd, with tokens only, until the test ends. It returns its URL. The cluster must have
// Options.REST.
func (c *Cluster) StartREST(t testing.TB) (url string) {
	t.Helper()
	path, err := findProgram("slurmrestd")
	if err != nil {
		t.Fatal(err)
	}
	ports, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	cmd := exec.Command(path, "-f", c.Conf, "-a", "rest_auth/jwt", "-s", "openapi/v0.0.38", address) //nolint:noctx // the test ends the process by its process ID
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "SLURM_CONF=" + c.Conf, "SLURM_JWT=daemon"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: restUser, Gid: restUser}, Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endDaemon(cmd, syscall.SIGTERM) })
	if err := awaitReady(t.Context(), "slurmrestd", func() bool {
		conn, err := net.Dial("tcp", address) //nolint:noctx // the address needs no lookup of a name
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}); err != nil {
		t.Fatal(err)
	}
	return "http://" + address
}

// skipTest skips a test, or fails it if VK_REQUIRE_SLURM is 1.
func skipTest(t testing.TB, why error) {
	t.Helper()
	if os.Getenv("VK_REQUIRE_SLURM") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// Token returns a user's token for slurmrestd. It expires after some seconds.
func (c *Cluster) Token(t testing.TB, user string, seconds int) string {
	t.Helper()
	out, err := c.Run(t.Context(), "scontrol", "token", "username="+user, fmt.Sprintf("lifespan=%d", seconds))
	token, ok := strings.CutPrefix(strings.TrimSpace(out), "SLURM_JWT=")
	if err != nil || !ok {
		t.Fatalf("no token: %q, %v", out, err)
	}
	return token
}
