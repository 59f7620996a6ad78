// SPDX-License-Identifier: Apache-2.0

//go:build linux

package delivery

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"
)

// sshd is the server of OpenSSH in Debian's package openssh-server.
const sshd = "/usr/sbin/sshd"

// stock is a machine with a stock image: a directory with a real SSH server.
type stock struct {
	root   string // of the machine
	keys   Keys
	config Config
	cut    atomic.Int64 // the bytes after which the connection ends; 0: never
}

// newStock starts a machine whose user data were UserData's.
func newStock(t *testing.T) *stock {
	t.Helper()
	if _, err := os.Stat(sshd); err != nil {
		t.Skipf("no server of OpenSSH: %v: install openssh-server", err)
	}
	if os.Geteuid() != 0 {
		t.Skip("the server must let root in: run the test as root, as CI does")
	}
	dir, err := os.MkdirTemp("/var/tmp", "delivery-") //nolint:usetesting // sshd refuses files below a directory that everybody may write
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &stock{root: filepath.Join(dir, "root"), keys: Keys{newKey(t), newKey(t)}, config: Config{Agent: filepath.Join(dir, "agent"), User: "root"}}
	var told struct {
		SSH   map[string]string `json:"ssh_keys"`
		Users []struct {
			Keys []string `json:"ssh_authorized_keys"`
		}
		Files []struct {
			Path    string
			Content []byte
		} `json:"write_files"`
	}
	text, _ := bytes.CutPrefix(UserData(s.config, s.keys, []byte("user data")), []byte("#cloud-config\n"))
	if err := json.Unmarshal(text, &told); err != nil {
		t.Fatal(err)
	}
	var listens [2]net.Listener
	for i := range listens {
		if listens[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	server := listens[1].Addr().(*net.TCPAddr)
	_ = listens[1].Close() // sshd opens it again
	s.config.Port = listens[0].Addr().(*net.TCPAddr).Port
	for name, file := range map[string]struct {
		text string
		mode os.FileMode
	}{
		"root" + userDataFile: {string(told.Files[0].Content), 0o600}, "host": {told.SSH["ed25519_private"], 0o600}, "authorized": {told.Users[0].Keys[0] + "\n", 0o600},
		"agent":         {strings.Repeat("agent\n", 1<<20), 0o600},
		"bin/systemctl": {"#!/bin/sh\necho \"$@\" >>" + dir + "/systemctl\n[ \"$*\" != 'mask sshd.service' ] || exit 1\n[ $1 != is-active ] || [ -e " + dir + "/active ] || exit 3\n", 0o755},
		"config": {fmt.Sprintf("ListenAddress %s\nHostKey %s/host\nAuthorizedKeysFile %[2]s/authorized\nPidFile none\nStrictModes no\nPermitRootLogin prohibit-password\n"+
			"UsePAM no\nSetEnv PATH=%[2]s/bin:/usr/bin:/bin\n", server, dir), 0o600},
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(file.text), file.mode)); err != nil { //nolint:gosec // as a machine has them
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { //nolint:gosec // the package makes it so
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), sshd, "-D", "-e", "-f", filepath.Join(dir, "config"))
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	listening, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if said = append(said, lines.Text()); strings.Contains(lines.Text(), "Server listening") {
				close(listening)
			}
		}
	}()
	t.Cleanup(func() {
		_ = listens[0].Close()
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("sshd says %q", said)
		}
	})
	select {
	case <-listening:
	case <-ended:
		t.Fatal("sshd ends")
	}
	go func() {
		for {
			conn, err := listens[0].Accept()
			if err != nil {
				return
			}
			go s.forward(conn, server.String())
		}
	}()
	return s
}

// forward connects a client with the server, and cuts the connection after some bytes.
func (s *stock) forward(conn net.Conn, to string) {
	defer conn.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	go func() { _, _ = io.Copy(conn, server); _ = conn.Close() }()
	var from io.Reader = conn
	if most := s.cut.Load(); most > 0 {
		from = io.LimitReader(conn, most)
	}
	_, _ = io.Copy(server, from)
}

func newKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestAgentIsDeliveredToOpenSSH: the machine gets the agent and its service, and the SSH server is closed.
func TestAgentIsDeliveredToOpenSSH(t *testing.T) {
	s := newStock(t)
	if err := deliver(t.Context(), s.config, s.keys, "127.0.0.1", s.root); err != nil {
		t.Fatal(err)
	}
	want, _ := os.ReadFile(s.config.Agent)
	got, err := os.ReadFile(s.root + agentFile)
	info, _ := os.Stat(s.root + agentFile)
	if err != nil || !bytes.Equal(got, want) || info.Mode() != 0o755 {
		t.Errorf("the agent has %d bytes, %v", len(got), err)
	}
	if text, err := os.ReadFile(s.root + unitFile); err != nil || string(text) != unit {
		t.Errorf("the service is %q, %v", text, err)
	}
	did, _ := os.ReadFile(filepath.Join(filepath.Dir(s.root), "systemctl"))
	if !strings.Contains(string(did), "enable --now vk-cell.service\nstop ssh.socket\nmask ssh.socket") {
		t.Errorf("systemctl %s", did)
	}
}

// TestOpenSSHServerIsNoSuccess: if the SSH server of a machine stays active, the delivery fails and the agent does not run.
func TestOpenSSHServerIsNoSuccess(t *testing.T) {
	s := newStock(t)
	dir := filepath.Dir(s.root)
	if err := os.WriteFile(filepath.Join(dir, "active"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := deliver(t.Context(), s.config, s.keys, "127.0.0.1", s.root); err == nil || !strings.Contains(err.Error(), "still active") {
		t.Errorf("got %v", err)
	}
	if did, _ := os.ReadFile(filepath.Join(dir, "systemctl")); !strings.HasSuffix(string(did), "disable --now vk-cell.service\n") {
		t.Errorf("systemctl %s", did)
	}
}

// TestAnotherHostGetsNoAgent: a server with another host key gets nothing, and a server does not accept another node.
func TestAnotherHostGetsNoAgent(t *testing.T) {
	s := newStock(t)
	for want, k := range map[string]Keys{"its key is": {newKey(t), s.keys.Node}, "does not let the user in": {s.keys.Host, newKey(t)}} {
		if err := deliver(t.Context(), s.config, k, "127.0.0.1", s.root); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(s.root, "usr")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the machine has files: %v", err)
	}
}

// TestCutDeliveryIsRepeated: after an interrupted connection, no agent runs, and the next delivery is complete.
func TestCutDeliveryIsRepeated(t *testing.T) {
	s := newStock(t)
	s.cut.Store(1 << 20)
	if err := deliver(t.Context(), s.config, s.keys, "127.0.0.1", s.root); err == nil {
		t.Fatal("a cut delivery succeeds")
	}
	if _, err := os.Stat(s.root + agentFile); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the machine has an agent: %v", err)
	}
	s.cut.Store(0)
	if err := deliver(t.Context(), s.config, s.keys, "127.0.0.1", s.root); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(s.root + agentFile); err != nil || info.Size() != 6<<20 {
		t.Errorf("the agent is %v, %v", info, err)
	}
}

// TestUserDataFitEC2: the user data have the keys, and at most 16 KiB.
func TestUserDataFitEC2(t *testing.T) {
	k := Keys{newKey(t), newKey(t)}
	text := UserData(Config{User: "debian"}, k, bytes.Repeat([]byte("x"), 4<<10))
	var told struct {
		SSH map[string]string `json:"ssh_keys"`
	}
	body, is := bytes.CutPrefix(text, []byte("#cloud-config\n"))
	if err := json.Unmarshal(body, &told); err != nil || !is || len(text) > 16<<10 {
		t.Fatalf("%d bytes, %v: %s", len(text), err, text)
	}
	if block, _ := pem.Decode([]byte(told.SSH["ed25519_private"])); block == nil {
		t.Error("the host key is not PEM")
	}
	key, err := ssh.ParseRawPrivateKey([]byte(told.SSH["ed25519_private"]))
	if host, ok := key.(*ed25519.PrivateKey); err != nil || !ok || !host.Equal(k.Host) || bytes.Contains(text, k.Node.Seed()) {
		t.Errorf("the host key is %T, %v", key, err)
	}
}
