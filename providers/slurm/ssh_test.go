// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/slurmtest"
)

// FuzzQuoted checks that a shell gets each word unchanged.
func FuzzQuoted(f *testing.F) {
	every := make([]byte, 0, 255)
	for b := 1; b < 256; b++ {
		every = append(every, byte(b))
	}
	for _, seed := range []string{"", "a b", "'", "''\\'", "$(touch /x) `id` ${HOME} !! ~ * ? [a] ; & | < > # \\ \" \n \t -n", string(every)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, word string) {
		if strings.Contains(word, "\x00") {
			return // a command line cannot contain a NUL
		}
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "printf '%s|' "+shellexec.Quote(word)+" "+shellexec.Quote(word+"'")).CombinedOutput()
		if want := word + "|" + word + "'|"; err != nil || string(out) != want {
			t.Errorf("%q: got %q, %v", word, out, err)
		}
	})
}

func TestSSHRefusesWhatCannotBe(t *testing.T) {
	for _, s := range []SSH{
		{}, {Host: "-oProxyCommand=id"}, {Host: "a b"}, {Host: "h", User: "-x"}, {Host: "h", Port: 70000}, {Host: "h", IdentityFile: "key"},
		{Host: "h", KnownHostsFile: "/a b"}, {Host: "h", ConfigFile: "/%h"},
	} {
		if _, err := (Config{ClusterName: "a", SharedDir: "/s", SSH: &s}).complete(); err == nil {
			t.Errorf("%+v is taken", s)
		}
	}
	if _, err := (Config{ClusterName: "a", SharedDir: "/s", SSH: &SSH{Host: "login.example.org", User: "vk"}}).complete(); err != nil {
		t.Error(err)
	}
}

// output is a session with an output, and possibly an input.
type output struct {
	silent
	in  io.Reader
	out *bytes.Buffer
}

func (o output) Stdin() io.Reader       { return o.in }
func (o output) Stdout() io.WriteCloser { return closer{o.out} }

type closer struct{ io.Writer }

func (closer) Close() error { return nil }

// TestThroughSSH runs pods through an SSH server before Slurm, also through an outage of it. A server that
// cannot be trusted gets no request.
func TestThroughSSH(t *testing.T) {
	t.Parallel()
	c, server := slurmtest.Start(t, slurmtest.Options{}), slurmtest.StartSSH(t)
	config := testConfig(c, "ssh")
	config.SSH = &SSH{Host: "127.0.0.1", Port: server.Port, IdentityFile: server.Key, KnownHostsFile: server.KnownHosts}
	p, _ := running(t, config, nil)
	pod := shell("a", "echo out; sleep 300")
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	awaitPhase(t, p, "a", "Running")
	var out bytes.Buffer
	err := p.RunInContainer(t.Context(), "ns", "a", "c", []string{"sh", "-c", `cat; echo "$1"; exit 5`, "x", "it's $HOME"}, output{in: strings.NewReader("in\x00\n"), out: &out})
	var exited utilexec.ExitError
	if !errors.As(err, &exited) || exited.ExitStatus() != 5 || out.String() != "in\x00\nit's $HOME\n" {
		t.Errorf("exec: %q, %v", out.String(), err)
	}
	r, err := p.GetContainerLogs(t.Context(), "ns", "a", "c", api.ContainerLogOpts{})
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(r); err != nil || string(data) != "out\n" {
		t.Errorf("log %q, %v", data, err)
	}
	_ = r.Close()
	server.Stop()
	p.look()
	await(t, "the node is to be not ready", func() (bool, string) {
		err := p.Ping(t.Context())
		return err != nil && strings.Contains(err.Error(), "ssh 127.0.0.1"), fmt.Sprint(err)
	})
	if got := p.phase(t, "a"); got != "Running" {
		t.Errorf("the pod is %s while the server is away", got)
	}
	if err := p.CreatePod(t.Context(), shell("b", "true")); err == nil || !unclear(err) {
		t.Errorf("a submission without a connection: %v, want no answer", err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.look()
	await(t, "the node is to be ready", func() (bool, string) { err := p.Ping(t.Context()); return err == nil, fmt.Sprint(err) })
	if err := p.CreatePod(t.Context(), shell("b", "true")); err != nil {
		t.Error(err)
	}
	awaitPhase(t, p, "b", "Succeeded")
	for _, name := range []string{"a", "b"} {
		if err := p.DeletePod(t.Context(), shell(name, "")); err != nil {
			t.Error(err)
		}
	}
	await(t, "nothing is to be left", func() (bool, string) {
		jobs, err := c.Run(t.Context(), "squeue", "--noheader", "--format=%i")
		left, _ := os.ReadDir(filepath.Join(c.Shared, "ssh", "node"))
		return err == nil && strings.TrimSpace(jobs) == "" && len(left) == 0, fmt.Sprint(jobs, err, left)
	})
}

// TestSSHTrustsKnownHostsOnly checks that no command runs at a server with an unknown or changed key, nor with a
// key that the server does not know.
func TestSSHTrustsKnownHostsOnly(t *testing.T) {
	server := slurmtest.StartSSH(t)
	other, err := server.NewKey(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	wrong := other + ".known"
	if err := server.Know("other", wrong); err != nil {
		t.Fatal(err)
	}
	good := SSH{Host: "127.0.0.1", Port: server.Port, IdentityFile: server.Key, KnownHostsFile: server.KnownHosts}
	for want, change := range map[string]func(*SSH){
		"Host key verification failed": func(s *SSH) { s.KnownHostsFile = wrong },
		"Permission denied":            func(s *SSH) { s.IdentityFile = other },
		"No ED25519 host key is known": func(s *SSH) { s.KnownHostsFile = "/dev/null" },
		"":                             func(*SSH) {},
	} {
		s, ran := good, filepath.Join(t.TempDir(), "ran")
		change(&s)
		client := client{ssh: &s}
		_, err := client.run(t.Context(), "touch", ran)
		_, statErr := os.Stat(ran)
		if (want == "") != (err == nil) || (want == "") != (statErr == nil) {
			t.Errorf("%q: %v, %v", want, err, statErr)
		}
		if err == nil {
			continue
		}
		if !strings.Contains(err.Error(), want) || !unclear(err) {
			t.Errorf("got %v, want %q and no answer", err, want)
		}
	}
}
