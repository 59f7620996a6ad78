// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// one is a group of a node that has one.
func (g *groups) one() *aci.ContainerGroup {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, v := range g.views {
		return v.group
	}
	return nil
}

// terminal is a session whose output is kept. Without a size it has no terminal.
type terminal struct {
	mu    sync.Mutex
	shown bytes.Buffer
	in    io.Reader
	sizes chan api.TermSize
}

func (s *terminal) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.Write(b)
}

func (s *terminal) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

func (s *terminal) Close() error { return nil }

// Stdin implements api.AttachIO.
func (s *terminal) Stdin() io.Reader { return s.in }

// Stdout implements api.AttachIO.
func (s *terminal) Stdout() io.WriteCloser { return s }

// Stderr implements api.AttachIO.
func (s *terminal) Stderr() io.WriteCloser { return nil }

// TTY implements api.AttachIO.
func (s *terminal) TTY() bool { return s.sizes != nil }

// Resize implements api.AttachIO.
func (s *terminal) Resize() <-chan api.TermSize { return s.sizes }

// TestTerminal has the first size of a terminal reach the command, which ends with the key for the end of the input.
func TestTerminal(t *testing.T) {
	p := testAzure(t).provider(t, nil).run(t)
	pod := programPod("u-1", program.Program{Stay: program.Forever})
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	until(t, "the pod to run", func() bool { return p.phase(pod) == corev1.PodRunning })
	in, typed := io.Pipe()
	s := &terminal{in: in, sizes: make(chan api.TermSize, 1)}
	s.sizes <- api.TermSize{Height: 50, Width: 132}
	ended := make(chan error, 1)
	go func() {
		ended <- p.RunInContainer(t.Context(), "ns", pod.Name, "main", append([]string{"program"}, program.Program{Size: true, Exit: 5}.Args()...), s)
	}()
	until(t, "the size", func() bool { return strings.Contains(s.text(), "size 50 132") })
	typed.Close()
	var exit utilexec.CodeExitError
	if err := <-ended; !errors.As(err, &exit) || exit.Code != 5 {
		t.Errorf("got %v, want exit code 5", err)
	}
	if strings.Contains(s.text(), "\x1e") {
		t.Errorf("the mark is shown: %q", s.text())
	}
}

// TestScripts runs them by a shell of this machine, without a terminal: TestProcesses has one.
func TestScripts(t *testing.T) {
	every := make([]byte, 3000)
	for i := range every {
		every[i] = byte(i)
	}
	for _, c := range []struct {
		command []string
		input   []byte
		out     string
		code    string
	}{
		{command: []string{"printf", "%s|", "a b", "it's", `"`, "$HOME", "`x`", "a\nb", "*", `\`, "", "\t!%s"}, out: "a b|it's|\"|$HOME|`x`|a\nb|*|\\||\t!%s|", code: "0"},
		{command: []string{"sh", "-c", "exit 7"}, code: "7"},
		{command: []string{"/no/such/program"}, out: "-", code: "127"},
		{command: []string{"cat"}, out: "", code: "0"},
		{command: []string{"cat"}, input: every, out: string(every), code: "0"},
		{command: []string{"head", "-c", "3"}, input: every, out: "\x00\x01\x02", code: "0"},
		{command: []string{"printf", "%s", strings.Repeat("long ", 5000)}, out: strings.Repeat("long ", 5000), code: "0"},
	} {
		out, err := inSteps(t, typed, string(octal([]byte(script(c.command, false, c.input != nil))))+"\n", string(octal(c.input))+"\n")
		if err != nil {
			t.Fatalf("%.60q: %v: %.80q", c.command, err, out)
		}
		_, rest, _ := strings.Cut(out, readyMark+"\n"+beginMark+"\n")
		shown, code, found := strings.Cut(rest, exitMark)
		if code, _, _ = strings.Cut(code, "\n"); !found || code != c.code || shown != c.out && c.out != "-" {
			t.Errorf("%.60q: got %.80q, want %.80q and code %s", c.command, out, c.out, c.code)
		}
	}
}

// inSteps writes to a shell as a session does, each part when the shell has said that it is ready for it: a shell may read ahead.
func inSteps(t *testing.T, parts ...string) (string, error) {
	t.Helper()
	sh := exec.CommandContext(t.Context(), "sh")
	in, err := sh.StdinPipe()
	if err != nil {
		return "", err
	}
	out, err := sh.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := sh.Start(); err != nil {
		return "", err
	}
	lines := bufio.NewReader(out)
	var all strings.Builder
	for i, part := range parts {
		if _, err := io.WriteString(in, part); err != nil && i < 2 { // a command may end before its input
			return all.String(), err
		}
		if i == len(parts)-1 {
			break
		}
		line, err := lines.ReadString('\n')
		all.WriteString(line)
		if err != nil {
			return all.String(), err
		}
	}
	in.Close()
	rest, err := io.ReadAll(lines)
	all.Write(rest)
	return all.String(), errors.Join(err, sh.Wait())
}

func TestTheMarkInParts(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 0, "abc\x1e": 1, "abc\x1evk-ex": 6, "\x1evk-exit": 8, "\x1evk-other": 0} {
		if got := beginning([]byte(text)); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

// stays goes on until it is asked to stop.
var stays = program.Program{Stay: program.Forever}

// TestSessionThatCannotBeOpenedSaysWhy, and not with which URI, which lets in whoever has it.
func TestSessionThatCannotBeOpenedSaysWhy(t *testing.T) {
	for uri, want := range map[string]string{
		"wss://127.0.0.1:1/sessions/canary":       "connection refused",
		"wss://127.0.0.1:1/sessions/canary\x7f":   "its URI cannot be read",
		"wss://canary:port/sessions/canary":       "its URI cannot be read",
		"https://127.0.0.1:1/sessions/canary?x=1": "malformed ws or wss URL",
	} {
		_, response, err := new(websocket.Dialer).DialContext(t.Context(), uri, nil)
		if response != nil {
			response.Body.Close()
		}
		if said := fmt.Sprint(quietly(err)); err == nil || !strings.Contains(said, want) || strings.Contains(said, "canary") {
			t.Errorf("%q: it says %q, want %q", uri, said, want)
		}
	}
}
