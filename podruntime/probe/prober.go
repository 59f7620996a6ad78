// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/probing"
)

// Prober probes containers while Run is running.
type Prober struct {
	cfg     Config
	begin   time.Time
	jitter  func() float64 // a part of a period, 0 to 1
	metrics *probeMetrics
	dialer  dialer
	http    *http.Transport
	h2c     *http.Transport
	wake    chan struct{} // holds a value when the head of the queue has changed
	slots   chan struct{} // holds a value for each probe in progress; nil: no limit

	mu         sync.Mutex
	containers map[string]*container // guarded by mu, with all of their fields
	queue      queue                 // guarded by mu
}

// New returns a Prober without containers. A container that started more than ten seconds ago starts with the state in its pod's status.
func New(cfg Config) *Prober {
	if cfg.Changed == nil {
		cfg.Changed = func(types.UID) {}
	}
	if cfg.Event == nil {
		cfg.Event = func(*corev1.Pod, string, string, string, string) {}
	}
	cfg.ExecSlack, cfg.Tries = cmp.Or(cfg.ExecSlack, execSlack), cmp.Or(cfg.Tries, tries)
	d := dialer{cfg.Pods}
	plain, h2c := newTransports(d)
	p := &Prober{
		cfg:        cfg,
		begin:      time.Now(),
		jitter:     rand.Float64,
		metrics:    newProbeMetrics(),
		dialer:     d,
		http:       plain,
		h2c:        h2c,
		wake:       make(chan struct{}, 1),
		containers: map[string]*container{},
	}
	if cfg.AtOnce > 0 {
		p.slots = make(chan struct{}, cfg.AtOnce)
	}
	return p
}

// Make returns New(cfg) as the interface that the provider kit uses.
func Make(cfg Config) probing.Prober { return New(cfg) }

// Run probes until ctx ends, and returns when no probe is in progress any longer.
func (p *Prober) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if wait, any := p.launchDue(ctx, &running); any {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-timer.C:
		}
	}
}

// launchDue begins due probes, and returns the time until the next.
func (p *Prober) launchDue(ctx context.Context, running *sync.WaitGroup) (wait time.Duration, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) > 0 {
		w := p.queue[0]
		if wait := time.Until(w.due); wait > 0 {
			return wait, true
		}
		p.queue.remove(w)
		asked, cancel := context.WithCancel(ctx)
		w.cancel = cancel
		t := w.of.target
		running.Go(func() {
			defer cancel()
			p.runProbe(asked, w, t)
		})
	}
	return 0, false
}

// Ensure adds a container, or updates its data. It is cheap, so call it in every pass over the pod.
func (p *Prober) Ensure(t Target) {
	p.mu.Lock()
	c := p.containers[t.ID]
	var before Result
	if c == nil {
		c = newContainer(t, p.begin, p.metrics)
		p.containers[t.ID] = c
	} else {
		before = c.currentResult()
		c.updateTarget(t)
	}
	p.settleProbes(c)
	changed := before != c.currentResult()
	p.mu.Unlock()
	if changed {
		p.cfg.Changed(t.Pod.UID)
	}
}

// Forget drops the state of a container.
func (p *Prober) Forget(containerID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.containers[containerID]
	if c == nil {
		return
	}
	delete(p.containers, containerID)
	c.target.Running = false
	p.settleProbes(c)
	for _, other := range p.containers {
		if other.seriesKey() == c.seriesKey() {
			return // the container was restarted, and its metrics continue
		}
	}
	p.metrics.removeSeries(c)
}

// Result returns the state of a container. False means that Ensure was never called for the container.
func (p *Prober) Result(containerID string) (Result, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.containers[containerID]
	if c == nil {
		return Result{}, false
	}
	return c.currentResult(), true
}

// settleProbes adapts the queue and running probes to the state of the container.
func (p *Prober) settleProbes(c *container) {
	now := time.Now()
	for _, w := range c.probes {
		wanted := c.wantsProbe(w)
		switch {
		case !wanted && w.cancel != nil:
			w.cancel() // the probe is removed at the end of its run
		case !wanted:
			p.queue.remove(w)
		case w.cancel == nil && !w.isQueued():
			if w.due.IsZero() {
				w.due = c.firstRun(w, now)
				if period := w.period(); c.old && now.Sub(p.begin) < period {
					w.due = laterOf(w.due, now.Add(time.Duration(p.jitter()*float64(period))))
				}
			}
			p.queue.add(w)
		}
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// finishRun records the outcome of a run, and reports whether it counts. It does not count if the container has stopped in the meantime. An error
// changes nothing.
func (p *Prober) finishRun(ctx context.Context, w *probe, outcome outcome, took time.Duration, err error) (counts, changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := w.of
	before := c.currentResult()
	counts = ctx.Err() == nil && c.wantsProbe(w)
	if counts && err == nil {
		c.countOutcome(w, outcome)
		w.counts.addRun(outcome, took)
	}
	w.cancel = nil
	w.due = laterOf(w.due.Add(w.period()), time.Now())
	p.settleProbes(c)
	return counts, before != c.currentResult()
}
