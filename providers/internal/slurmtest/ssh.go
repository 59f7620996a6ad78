// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurmtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// SSHServer is an SSH server on the loopback. It accepts the user of the test with a generated key.
type SSHServer struct {
	// Port is the server's port on 127.0.0.1. Key is the private key of the user, KnownHosts the file with the
	// server's key.
	Port            int
	Key, KnownHosts string

	dir string
	cmd *exec.Cmd
}

// StartSSH starts a server for the duration of the test. Without the program the test is skipped, or fails if
// VK_REQUIRE_SLURM is 1.
func StartSSH(t testing.TB) *SSHServer {
	t.Helper()
	for _, program := range []string{"sshd", "ssh", "ssh-keygen"} {
		if _, err := findProgram(program); err != nil {
			if os.Getenv("VK_REQUIRE_SLURM") == "1" {
				t.Fatalf("%s is not installed: apt-get install openssh-server", program)
			}
			t.Skipf("%s is not installed: apt-get install openssh-server", program)
		}
	}
	s := &SSHServer{dir: t.TempDir()}
	s.Key, s.KnownHosts = filepath.Join(s.dir, "user"), filepath.Join(s.dir, "known")
	if err := s.prepareFiles(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// NewKey makes a new key, and returns the path of its private half.
func (s *SSHServer) NewKey(ctx context.Context, name string) (string, error) {
	path := filepath.Join(s.dir, name)
	if out, err := exec.CommandContext(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", path).CombinedOutput(); err != nil {
		return "", fmt.Errorf("ssh-keygen: %w: %s", err, out)
	}
	return path, nil
}

func (s *SSHServer) prepareFiles(ctx context.Context) error {
	for _, name := range []string{"host", "user"} {
		if _, err := s.NewKey(ctx, name); err != nil {
			return err
		}
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	s.Port = ports[0]
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { //nolint:gosec // sshd requires this mode
		return err
	}
	if err := s.Know("host", s.KnownHosts); err != nil {
		return err
	}
	text := fmt.Sprintf(`ListenAddress 127.0.0.1:%[2]d
HostKey %[1]s/host
AuthorizedKeysFile %[1]s/user.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100
`, s.dir, s.Port)
	return os.WriteFile(filepath.Join(s.dir, "config"), []byte(text), 0o600)
}

// Know writes the server's key of that name to a known_hosts file.
func (s *SSHServer) Know(key, path string) error {
	public, err := os.ReadFile(filepath.Join(s.dir, key+".pub"))
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(fmt.Sprintf("[127.0.0.1]:%d %s", s.Port, public)), 0o600)
}

// Start starts the server, and waits until it listens.
func (s *SSHServer) Start(ctx context.Context) error {
	path, err := findProgram("sshd")
	if err != nil {
		return err
	}
	s.cmd = exec.Command(path, "-D", "-f", filepath.Join(s.dir, "config"), "-E", filepath.Join(s.dir, "log")) //nolint:noctx // the process is ended by its process ID
	s.cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	return awaitReady(ctx, "sshd", func() bool {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port))) //nolint:noctx // a dial on this machine does not block
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// Stop ends the server. Sessions continue until their clients end them.
func (s *SSHServer) Stop() { endDaemon(s.cmd, syscall.SIGTERM) }
