// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// reporter sends the reports. provider.mu guards it.
type reporter struct {
	ctx     context.Context // its end removes the listener
	notify  func(*corev1.Pod)
	timer   *time.Timer // begins to send when the next report is due
	sending bool        // a goroutine does
}

// NotifyPods reports every change of every pod to notify until ctx ends. While reports are due, one goroutine
// sends them without a lock, so an older report never overtakes a newer one. Only one call may be active at a
// time.
func (p *provider) NotifyPods(ctx context.Context, notify func(*corev1.Pod)) {
	r := &reporter{ctx: ctx, notify: notify}
	r.timer = time.AfterFunc(time.Hour, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.sendDue()
	})
	p.mu.Lock()
	p.reporter = r
	p.sendDue()
	p.mu.Unlock()
	context.AfterFunc(ctx, func() {
		r.timer.Stop()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.reporter == r {
			p.reporter = nil
		}
	})
}

// sendDue begins to send due reports, or waits for the next one. The caller holds provider.mu.
func (p *provider) sendDue() {
	r := p.reporter
	if r == nil || r.sending || r.ctx.Err() != nil || len(p.agenda) == 0 {
		return
	}
	if wait := time.Until(p.agenda[0].due); wait > 0 {
		r.timer.Reset(wait)
		return
	}
	r.sending = true
	go p.sendReports(r)
}

// sendReports sends the due reports.
func (p *provider) sendReports(r *reporter) {
	for {
		p.mu.Lock()
		var pod *corev1.Pod
		if p.reporter == r && r.ctx.Err() == nil {
			pod = p.nextReport(time.Now())
		}
		if pod == nil {
			r.sending = false
			p.sendDue()
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		r.notify(pod)
	}
}

// nextReport returns a pod with a due report, or nil. The caller holds provider.mu.
func (p *provider) nextReport(now time.Time) *corev1.Pod {
	if len(p.agenda) == 0 {
		return nil
	}
	s := p.agenda[0]
	if s.due.After(now) {
		return nil
	}
	m := s.life.momentAt(now)
	p.agenda.planReport(s, m.next)
	if m.stopped {
		p.forgetPod(s)
	}
	return p.podAt(s, now)
}

// reportAt requests a report of s at due. The caller holds provider.mu.
func (p *provider) reportAt(s *simulated, due time.Time) {
	p.agenda.planReport(s, due)
	p.sendDue()
}
