// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/slurmtest"
)

// reader is a session that accepts no output while held is locked.
type reader struct {
	silent
	begun chan struct{}
	once  sync.Once
	held  sync.Mutex
	got   bytes.Buffer // guarded by held
}

func (r *reader) Stdout() io.WriteCloser { return closer{r} }

func (r *reader) Write(b []byte) (int, error) {
	r.once.Do(func() { close(r.begun) })
	r.held.Lock()
	defer r.held.Unlock()
	return r.got.Write(b)
}

// TestAttachGetsAllOrNothingWaits checks that an attached session gets the whole output up to the container's
// end, and that a session that accepts no output delays no pod.
func TestAttachGetsAllOrNothingWaits(t *testing.T) {
	t.Parallel()
	c := slurmtest.Start(t, slurmtest.Options{})
	p, _ := running(t, testConfig(c, "attach"), nil)
	gate := filepath.Join(c.Dir, "gate")
	wait := "while [ ! -e " + gate + " ]; do echo tick; sleep 0.1; done; "
	for name, text := range map[string]string{"all": wait + "head -c 300000 /dev/zero | tr '\\000' x; echo; exit 3", "stalled": wait + "head -c 32000000 /dev/zero; exit 4"} {
		if err := p.CreatePod(t.Context(), shell(name, text)); err != nil {
			t.Fatal(err)
		}
	}
	sessions := map[string]*reader{"all": {begun: make(chan struct{})}, "stalled": {begun: make(chan struct{})}}
	ends := map[string]chan error{}
	sessions["stalled"].held.Lock()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, session := range sessions {
		awaitPhase(t, p, name, "Running")
		end := make(chan error, 1)
		ends[name] = end
		go func() { end <- p.AttachToContainer(ctx, "ns", name, "c", session) }()
		select {
		case <-session.begun:
		case err := <-end:
			t.Fatal(name, err)
		}
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	awaitPhase(t, p, "stalled", "Failed") // it has written its whole output
	if pod, err := p.GetPod(t.Context(), "ns", "stalled"); err != nil || pod.Status.ContainerStatuses[0].State.Terminated.ExitCode != 4 {
		t.Errorf("stalled: %+v, %v, want 4", pod, err)
	}
	if err := <-ends["all"]; err != nil {
		t.Error(err)
	}
	sessions["all"].held.Lock()
	if n := strings.Count(sessions["all"].got.String(), "x"); n != 300000 {
		t.Errorf("%d bytes came, want 300000", n)
	}
	sessions["all"].held.Unlock()
	sessions["stalled"].held.Unlock()
	if err := <-ends["stalled"]; err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("the one that stalled: %v, want to be told", err)
	}
}
