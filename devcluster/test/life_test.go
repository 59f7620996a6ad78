// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestLife(t *testing.T) {
	c := newCLI(t)
	if s := c.status(); s["state"] != "stopped" {
		t.Errorf("status before the first start: got %v, want stopped", s)
	}
	c.up()
	s := c.status()
	if s["state"] != "running" || s["kubernetes"] != "v1.37.1" || !strings.HasPrefix(s["address"], "https://127.0.0.1:") {
		t.Errorf("status: got %v, want a running v1.37.1 on 127.0.0.1", s)
	}
	if got := c.run("kubeconfig"); got != s["kubeconfig"]+"\n" {
		t.Errorf("kubeconfig: got %q, want %q", got, s["kubeconfig"])
	}
	if out := c.run("kubectl", "version"); strings.Count(out, "v1.37.1") != 2 {
		t.Errorf("kubectl version: got\n%s\nwant v1.37.1 from client and server", out)
	}
	if out := c.run("kubectl", "get", "serviceaccounts", "--namespace=default", "-o", "name"); out != "serviceaccount/default\n" {
		t.Errorf("service accounts: got %q, want the default one", out)
	}

	_, stderr, code := c.try("up", "--detach")
	if code != 1 || !strings.Contains(stderr, "already running (pid "+s["pid"]+")") {
		t.Errorf("second up: got exit code %d and %q, want 1 and that it is running", code, stderr)
	}

	c.run("kubectl", "create", "namespace", "kept")
	ended := watchProcess(t, c.pid())
	t.Log(c.run("down"))
	ended()
	if s := c.status(); s["state"] != "stopped" || s["pid"] != "" {
		t.Errorf("status after down: got %v, want stopped", s)
	}
	if _, stderr, code := c.try("kubectl", "get", "ns"); code == 0 || !strings.Contains(stderr, "devcluster up") {
		t.Errorf("kubectl without a cluster: got exit code %d and %q, want how to start one", code, stderr)
	}
	c.run("down") // again, and no error

	c.up()
	if out := c.run("kubectl", "get", "namespace", "kept", "-o", "name"); out != "namespace/kept\n" {
		t.Errorf("namespace after a restart: got %q", out)
	}
	if again := c.status(); again["address"] != s["address"] {
		t.Errorf("address after a restart: got %s, want %s again", again["address"], s["address"])
	}
	c.run("down", "--delete")
	if left, err := os.ReadDir(c.base); err != nil || len(left) != 0 {
		t.Errorf("after down --delete: got %v, %v, want nothing left", left, err)
	}
}

func TestSideBySideAndKilled(t *testing.T) {
	c := newCLI(t)
	c.up("--name=one")
	c.up("--name=two", "--keep=false")
	if one, two := c.status("--name=one"), c.status("--name=two"); one["address"] == two["address"] {
		t.Errorf("both clusters are at %s", one["address"])
	}
	list := c.run("list")
	if strings.Count(list, "running") != 2 {
		t.Errorf("list: got\n%s\nwant two running clusters", list)
	}

	pid := c.pid("--name=one")
	ended := watchProcess(t, pid)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ended()
	if s := c.status("--name=one"); s["state"] != "stopped" {
		t.Errorf("status of a killed cluster: got %v, want stopped", s)
	}
	c.up("--name=one")

	c.run("down", "--name=two")
	if _, err := os.Stat(filepath.Join(c.base, "two")); !os.IsNotExist(err) {
		t.Errorf("directory of a cluster with --keep=false after down: got %v, want that there is none", err)
	}
}

func TestStartFails(t *testing.T) {
	c := newCLI(t)
	for _, args := range [][]string{
		{"up", "--detach", "--keep=false", "--apiserver-arg=--bogus"},
		{"up", "--keep=false", "--apiserver-arg=--bogus"},
	} {
		_, stderr, code := c.try(args...)
		if code != 1 || !strings.Contains(stderr, "unknown flag: --bogus") {
			t.Errorf("%q: got exit code %d and %q, want 1 and the API server's complaint", args, code, stderr)
		}
	}
	// The API server finds this error after its start. It ends, and all other components end with it.
	_, stderr, code := c.try("up", "--keep=false", "--apiserver-arg=--etcd-servers=https://127.0.0.1:1", "--apiserver-arg=--etcd-cafile=/nothing")
	if code != 1 || !strings.Contains(stderr, "kube-apiserver ended") {
		t.Errorf("API server ends: got exit code %d and %q, want 1 and who ended", code, stderr)
	}
}

func TestIsKubectlByName(t *testing.T) {
	c := newCLI(t)
	link := filepath.Join(t.TempDir(), "kubectl")
	if err := os.Symlink(c.binary, link); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), link, "version", "--client").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Client Version: v1.37.1") {
		t.Errorf("kubectl version: got %q, %v, want v1.37.1", out, err)
	}
}
