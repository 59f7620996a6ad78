// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// NotifyPods reports every change of every pod to notify until ctx ends. The reports come
// from one goroutine, which ends with ctx, so that an older one never
// overtakes a newer one; no lock is held meanwhile. It is to be called once at a time.
func (p *provider) NotifyPods(ctx context.Context, notify func(*corev1.Pod)) {
	p.mu.Lock()
	p.reporters++
	p.mu.Unlock()
	go p.report(ctx, notify)
}

// report sends reports when they are due, until ctx ends.
func (p *provider) report(ctx context.Context, notify func(*corev1.Pod)) {
	defer func() {
		p.mu.Lock()
		p.reporters--
		p.mu.Unlock()
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-timer.C:
		}
		for ctx.Err() == nil {
			pod, wait := p.nextReport(time.Now())
			if pod == nil {
				if wait > 0 {
					timer.Reset(wait)
				}
				break
			}
			notify(pod)
		}
	}
}

// nextReport returns a pod whose report is due, else how long to wait for one; 0
// means until woken.
func (p *provider) nextReport(now time.Time) (*corev1.Pod, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.agenda) == 0 {
		return nil, 0
	}
	s := p.agenda[0]
	if s.due.After(now) {
		return nil, s.due.Sub(now)
	}
	m := s.life.at(now)
	p.agenda.plan(s, m.next)
	if m.stopped {
		p.forget(s)
	}
	return p.snapshot(s, now), 0
}

// reportAt asks for a report of s at due. provider.mu is held.
func (p *provider) reportAt(s *simulated, due time.Time) {
	p.agenda.plan(s, due)
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
