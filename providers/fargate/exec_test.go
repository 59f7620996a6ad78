// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestCommandOfACancelledExecEnds checks that a command ends with its caller: when the request ends, or when its
// output is no longer read.
func TestCommandOfACancelledExecEnds(t *testing.T) {
	c := cloudOf(t)
	p := open(t, c)
	pod := podOf("web", program.Program{Stay: program.Forever})
	if err := p.kit.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	until(t, p, "web", "running", isRunning)
	tick := everyMoment(t)
	for how, broken := range map[string]error{"the request ends": nil, "nobody reads the output": errors.New("nobody reads")} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		command := append([]string{"program"}, program.Program{Stay: program.Forever, Print: []string{"out"}, Tick: 100 * time.Millisecond}.Args()...)
		to := &leaver{caller: caller{}, broken: broken, seen: make(chan struct{}, 1)}
		go func() { done <- p.kit.RunInContainer(ctx, "shop", "web", "main", command, to) }()
		<-to.seen
		if c.Commands() != 1 {
			t.Errorf("%s: %d commands run, want one", how, c.Commands())
		}
		if broken == nil {
			cancel()
		}
		if err := <-done; err == nil {
			t.Errorf("%s: exec says that the command has ended", how)
		}
		for c.Commands() > 0 {
			tick(how + ": the command has ended")
		}
		cancel()
	}
}

// leaver is a caller that records the first output. If broken, it accepts no output.
type leaver struct {
	caller
	broken error
	seen   chan struct{}
}

// Stdout implements api.AttachIO.
func (l *leaver) Stdout() io.WriteCloser { return unclosed{l} }

// Write implements io.Writer.
func (l *leaver) Write(data []byte) (int, error) {
	select {
	case l.seen <- struct{}{}:
	default:
	}
	return len(data), l.broken
}
