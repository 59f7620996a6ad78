// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
)

// outcome is the outcome of one run of a probe, as events name it.
type outcome string

const (
	success outcome = "success"
	warning outcome = "warning" // success, with a message
	failure outcome = "failure"
	unknown outcome = "unknown" // the probe could not run
)

const (
	// tries bounds the attempts of a probe that cannot run, unless Config has another number.
	tries = 3
	// readLimit bounds the part of a response that is read.
	readLimit = 10 << 10
)

// runProbe runs a probe once, and reports the outcome.
func (p *Prober) runProbe(ctx context.Context, w *probe, t Target) {
	leave, begun := p.enterSlot(ctx)
	if !begun {
		p.finishRun(ctx, w, unknown, 0, ctx.Err())
		return
	}
	defer leave()
	begin := time.Now()
	var outcome outcome
	var output string
	var err error
	for range p.cfg.Tries {
		if outcome, output, err = p.askContainer(ctx, w, t); err == nil || ctx.Err() != nil {
			break
		}
	}
	counts, changed := p.finishRun(ctx, w, outcome, time.Since(begin), err)
	if counts {
		p.recordEvent(w.kind, t, outcome, output, err)
	}
	if changed {
		p.cfg.Changed(t.Pod.UID)
	}
}

// enterSlot waits until a probe may start. It returns false if ctx has ended.
func (p *Prober) enterSlot(ctx context.Context) (leave func(), begun bool) {
	if p.slots == nil {
		return func() {}, true
	}
	select {
	case p.slots <- struct{}{}:
		return func() { <-p.slots }, true
	case <-ctx.Done():
		return nil, false
	}
}

// askContainer runs a probe once.
func (p *Prober) askContainer(ctx context.Context, w *probe, t Target) (outcome, string, error) {
	timeout := w.timeout()
	switch action := w.spec.ProbeHandler; {
	case action.Exec != nil:
		return p.askExec(ctx, action.Exec, t, timeout)
	case action.HTTPGet != nil:
		return p.askHTTP(ctx, action.HTTPGet, t, timeout)
	case action.TCPSocket != nil:
		return p.askTCP(ctx, action.TCPSocket, t, timeout)
	case action.GRPC != nil:
		return p.askGRPC(ctx, action.GRPC, t, timeout)
	default:
		return unknown, "", fmt.Errorf("missing probe handler for %s:%s", podName(t.Pod), t.Container.Name)
	}
}

// recordEvent records the event of a run that was not a plain success.
func (p *Prober) recordEvent(kind Kind, t Target, outcome outcome, output string, err error) {
	reason := "Unhealthy"
	var text string
	switch {
	case err != nil:
		text = fmt.Sprintf("%s probe errored and resulted in %s state: %s", kind, outcome, shortOutput(err.Error()))
	case outcome == failure:
		text = fmt.Sprintf("%s probe failed: %s", kind, shortOutput(output))
	case outcome == warning:
		reason, text = "ProbeWarning", fmt.Sprintf("%s probe warning: %s", kind, shortOutput(output))
	default:
		return
	}
	p.cfg.Event(t.Pod, t.Container.Name, corev1.EventTypeWarning, reason, text)
}

// shortOutput truncates an output, and makes it valid UTF-8, because events refuse other bytes.
func shortOutput(output string) string { return redact.Cut(strings.ToValidUTF8(output, "\uFFFD")) }

// podName formats the name of a pod like a kubelet's errors.
func podName(pod *corev1.Pod) string {
	return fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID)
}
