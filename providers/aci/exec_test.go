// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
	corev1 "k8s.io/api/core/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/websession"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// one returns the group of a node that has a single group.
func (g *groups) one() *aci.ContainerGroup {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, v := range g.views {
		return v.group
	}
	return nil
}

// terminal is a session that records its output. Without a size it has no terminal.
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

// TestTerminal checks that the first size of a terminal reaches the command, and that the end-of-input key ends
// the command.
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

// stays is a program that runs until it is asked to stop.
var stays = program.Program{Stay: program.Forever}

// TestSessionThatCannotBeOpenedSaysWhy checks that the error has the reason but not the URI, which gives access
// to everyone who has it.
func TestSessionThatCannotBeOpenedSaysWhy(t *testing.T) {
	for uri, want := range map[string]string{
		"wss://127.0.0.1:1/sessions/canary":       "connection refused",
		"wss://127.0.0.1:1/sessions/canary\x7f":   "gives no address",
		"wss://canary:port/sessions/canary":       "gives no address",
		"https://127.0.0.1:1/sessions/canary?x=1": "gives no address",
	} {
		_, err := websession.Open(t.Context(), uri, websession.Options{})
		if said := fmt.Sprint(err); err == nil || !strings.Contains(said, want) || strings.Contains(said, "canary") {
			t.Errorf("%q: it says %q, want %q", uri, said, want)
		}
	}
}
