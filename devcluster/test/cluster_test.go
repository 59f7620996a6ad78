// SPDX-License-Identifier: Apache-2.0

// Package test runs the devcluster binary and checks the promises of its README.
//
// The binary is $DEVCLUSTER_BIN or bin/devcluster in the repository. Without a binary the tests are skipped. The
// tests have a package of their own, so that nothing of Kubernetes is linked into them.
package test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// startLimit is the time limit for a start. It is generous, because the machine may be busy with other work; a
// start usually takes three seconds.
const startLimit = 60 * time.Second

// cli runs devcluster with a base directory of its own.
type cli struct {
	t            *testing.T
	binary, base string
}

func newCLI(t *testing.T) *cli {
	t.Helper()
	binary := os.Getenv("DEVCLUSTER_BIN")
	if binary == "" {
		binary = filepath.Join("..", "..", "bin", "devcluster")
	}
	binary, err := filepath.Abs(binary)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(binary); err != nil {
		t.Skipf("find devcluster: %v; build it with hack/build-devcluster.sh or set DEVCLUSTER_BIN", err)
	}
	return &cli{t, binary, t.TempDir()}
}

// try runs a command and returns its output and exit code.
func (c *cli) try(args ...string) (stdout, stderr string, code int) {
	c.t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(c.t.Context(), c.binary, args...)
	cmd.Env = append(os.Environ(), "DEVCLUSTER_HOME="+c.base)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		c.t.Fatalf("run devcluster %q: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// run runs a command, which must succeed, and returns its output.
func (c *cli) run(args ...string) string {
	c.t.Helper()
	stdout, stderr, code := c.try(args...)
	if code != 0 {
		c.t.Fatalf("devcluster %q: exit code %d\n%s%s", args, code, stdout, stderr)
	}
	return stdout
}

// up starts a cluster in the background. The end of the test stops it.
func (c *cli) up(args ...string) {
	c.t.Helper()
	name := "--name=default"
	for _, a := range args {
		if strings.HasPrefix(a, "--name=") {
			name = a
		}
	}
	c.t.Cleanup(func() {
		cmd := exec.Command(c.binary, "down", name, "--delete", "--dir="+c.base)
		if out, err := cmd.CombinedOutput(); err != nil {
			c.t.Errorf("clean up: %v: %s", err, out)
		}
	})
	began := time.Now()
	out := c.run(append([]string{"up", "--detach"}, args...)...)
	took := time.Since(began)
	c.t.Logf("ready after %.1f s", took.Seconds())
	if took > startLimit {
		c.t.Errorf("ready after %s, want at most %s", took, startLimit)
	}
	for _, step := range []string{"✓ certificates", "✓ etcd", "✓ kube-apiserver", "✓ kube-scheduler", "✓ kube-controller-manager", "✓ ready"} {
		if !strings.Contains(out, step) {
			c.t.Errorf("up: got\n%s\nwant a line %q", out, step)
		}
	}
}

// status returns the fields of "devcluster status".
func (c *cli) status(args ...string) map[string]string {
	c.t.Helper()
	stdout, stderr, code := c.try(append([]string{"status"}, args...)...)
	fields := map[string]string{}
	for line := range strings.Lines(stdout) {
		if f := strings.Fields(line); len(f) == 2 {
			fields[f[0]] = f[1]
		}
	}
	if want := map[bool]int{true: 0, false: 1}[fields["state"] == "running"]; code != want {
		c.t.Errorf("status: got exit code %d for\n%s%s\nwant %d", code, stdout, stderr, want)
	}
	return fields
}

func (c *cli) pid(args ...string) int {
	c.t.Helper()
	pid, err := strconv.Atoi(c.status(args...)["pid"])
	if err != nil {
		c.t.Fatalf("status tells no pid: %v", err)
	}
	return pid
}

// watchProcess returns a function that waits until the process has ended. It uses a descriptor of this process,
// so a later process with the same ID does not matter.
func watchProcess(t *testing.T, pid int) (ended func()) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("open process %d: %v", pid, err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return func() {
		t.Helper()
		const seconds = 5 // the end of a large process takes its time after its lock is gone
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, seconds*1000)
		for err == unix.EINTR {
			n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, seconds*1000)
		}
		if err != nil || n != 1 {
			t.Errorf("process %d is still there (%v)", pid, err)
		}
	}
}
