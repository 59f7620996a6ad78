// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"context"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/stackpath"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/sshexec"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestWrongHostKey: nothing is sent to a console with another key, and the error has that key. The command doctor also reports it.
func TestWrongHostKey(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	pinned := h.config.Console.HostKey
	h.config.Console.HostKey = stackpath.NewConsole(h.region.Server).HostKey() // of another server
	p, stop := h.start()
	pod := h.Pod("default", "web", stays())
	pod.Spec.ServiceAccountName = ""
	h.Create(p, pod)
	h.UntilRuns(p, pod)
	command := append([]string{"program"}, program.Program{Print: []string{"it's me"}}.Args()...)
	err := p.RunInContainer(t.Context(), "default", "web", "main", command, &remotetest.Console{})
	if err == nil || !strings.Contains(err.Error(), "its key is SHA256:") {
		t.Errorf("exec at a console with another key: %v", err)
	}
	if err := p.Examine(t.Context()); err == nil || !strings.Contains(err.Error(), "its key is SHA256:") {
		t.Errorf("doctor: %v", err)
	}
	if got := h.region.console.Passwords(); len(got) != 0 {
		t.Errorf("it was shown %d passwords", len(got))
	}
	stop()

	h.config.Console.HostKey = pinned
	p, _ = h.start()
	h.UntilRuns(p, pod)
	if err := p.Examine(t.Context()); err != nil {
		t.Errorf("doctor: %v", err)
	}
	if got := h.region.console.Passwords(); len(got) != 0 {
		t.Errorf("doctor has shown %d passwords", len(got))
	}
	who := &remotetest.Console{}
	if err := p.RunInContainer(t.Context(), "default", "web", "main", command, who); err != nil || who.Out.String() != "it's me\n" {
		t.Errorf("exec: %v, %q", err, who.Out.String())
	}
	if got := h.region.console.Passwords(); len(got) != 1 || got[0] != clientSecret {
		t.Errorf("so the console sees no passwords: %d", len(got))
	}
}

// TestNoConsoleNoExec: without a console, exec is refused, and the workload does not allow console connections.
func TestNoConsoleNoExec(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	console := h.config.Console
	h.config.Console = sshexec.Server{}
	p, stop := h.start()
	pod := h.Pod("default", "web", stays())
	h.Create(p, pod)
	h.UntilRuns(p, pod)
	if err := p.RunInContainer(t.Context(), "default", "web", "main", []string{"id"}, &remotetest.Console{}); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "console.hostKey") {
		t.Errorf("got %v", err)
	}
	stop()
	h.config.Console = console
	p, _ = h.start()
	h.UntilRuns(p, pod)
	if err := p.RunInContainer(context.WithoutCancel(t.Context()), "default", "web", "main", []string{"id"}, &remotetest.Console{}); err == nil {
		t.Error("a workload from before there was a console lets it in")
	}
}
