// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/job"
)

// look is at what the job of a pod wrote.
type look struct {
	t     *tracked
	seen  os.FileInfo
	again bool
	said  *job.Status
	now   os.FileInfo
}

// readFiles takes in what jobs wrote. The shared file system may be slow, or hang: nobody waits for it with mu. Where it cannot be read no
// pod is taken to have said nothing.
func (p *provider) readFiles(ctx context.Context) {
	began := time.Now()
	var looks []look
	p.mu.Lock()
	for _, t := range p.pods {
		if t.said == nil || !t.said.Ended {
			looks = append(looks, look{t: t, seen: t.seen, again: p.unsettled(t)})
		}
	}
	p.mu.Unlock()
	var away error
	for i := range looks {
		l := &looks[i]
		var err error
		if l.said, l.now, err = p.place.said(l.t.id.UID, l.seen, l.again); err != nil {
			away = fmt.Errorf("sharedDir: what pods say cannot be read: %w", err)
		}
	}
	if err := p.place.used(); err != nil && len(looks) > 0 {
		away = err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if away != nil && p.away == nil {
		log.G(ctx).WithError(away).Warn("Pods stay as they are until their files can be read")
	}
	if p.away = away; away == nil {
		p.filesAt = began
	}
	for _, l := range looks {
		if l.said != nil {
			l.t.said, l.t.seen, p.changed = l.said, l.now, time.Now()
		}
		if l.said != nil || !l.t.overAt.IsZero() { // its time may be up
			p.refresh(l.t)
		}
	}
}

func number(text string) (n int) {
	for _, r := range text {
		if r < '0' || r > '9' {
			return 0
		}
		n = n*10 + int(r-'0')
	}
	return n
}

// unsettled reports whether the job of t is over and its last status may yet be seen: until its files were looked at in vain when its time was
// up. A job that had no node has none. The caller holds mu.
func (p *provider) unsettled(t *tracked) bool {
	if ended[t.job.State] == "" {
		t.overAt = time.Time{}
		return false
	}
	if t.overAt.IsZero() || p.away != nil {
		t.overAt = time.Now()
	}
	ran := t.said != nil || t.job.Host != "" && t.job.Host != "n/a" && t.job.Host != "(null)"
	return ran && (t.said == nil || !t.said.Ended) && p.filesAt.Sub(t.overAt) < p.settle
}

// refresh makes the status of t. The caller holds mu.
func (p *provider) refresh(t *tracked) {
	if t.status.Phase == corev1.PodSucceeded || t.status.Phase == corev1.PodFailed {
		return // it is final
	}
	q := t.job
	if p.unsettled(t) {
		q.State = "COMPLETING"
	}
	next := statusOf(t.pod, q, t.said)
	if t.status.StartTime != nil && next.StartTime == nil {
		next.StartTime = t.status.StartTime
	}
	if !equality.Semantic.DeepEqual(t.status, next) {
		t.status, t.reported = next, false
		p.changed = time.Now()
		if t.newsSince.IsZero() {
			t.newsSince = p.changed
		}
	}
}

// report tells of each pod that changed. Only one does at a time: what was later is told later.
func (p *provider) report() {
	p.reporting.Lock()
	defer p.reporting.Unlock()
	var changed []*corev1.Pod
	p.mu.Lock()
	for _, t := range p.pods {
		if !t.reported && !t.brief(time.Now()) {
			t.reported, t.newsSince = true, time.Time{}
			changed = append(changed, t.snapshot())
		}
	}
	p.mu.Unlock()
	for _, pod := range changed {
		p.notify(pod)
	}
}

// lasting is how long Slurm has to say something of a job that has not begun until it is told: most jobs begin before, and a write for each state on
// the way would delay what people wait for.
const lasting = 2 * time.Second

// brief tells whether all that is new of t may be over soon. The caller holds mu.
func (t *tracked) brief(now time.Time) bool {
	return t.said == nil && t.status.Phase == corev1.PodPending && now.Sub(t.newsSince) < lasting
}

// renewTokens writes tokens that are to be replaced.
func (p *provider) renewTokens(ctx context.Context) {
	var due []*tracked
	now := time.Now()
	p.mu.Lock()
	for _, t := range p.pods {
		if !t.renewAt.IsZero() && now.After(t.renewAt) && t.stop == nil {
			t.renewAt = now.Add(time.Minute) // where it fails
			due = append(due, t)
		}
	}
	p.mu.Unlock()
	var under sync.WaitGroup
	defer under.Wait()
	room := make(chan struct{}, renewals)
	for _, t := range due {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		under.Go(func() {
			defer func() { <-room }()
			if err := p.renew(ctx, t); err != nil {
				log.G(ctx).WithError(err).Warn("The tokens of a pod could not be renewed")
			}
		})
	}
}
