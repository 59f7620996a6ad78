// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
)

const (
	// manyAbove and manyFraction say how many are many: more than ten and more than a fifth of all, or several that are more
	// than half of all.
	manyAbove    = 10
	manyFraction = 5
	// unasked is how long a pod that a list lacks does not count before it was asked for by name: some
	// providers list no pods at all.
	unasked = 5 * time.Second
	// reviewEvery is how often the pods are counted at most, for there may be thousands.
	reviewEvery = time.Second
)

// quarantine keeps the pods that one side lacks although nobody was seen to remove them. Many at once are
// doubt about that side: a restored backup, a cache that is not filled, a region that does not
// answer. Nothing is done about any of them then, until they show again or complete
// lists have said the same for the whole period.
type quarantine struct {
	side    string // that lacks the pods
	period  time.Duration
	gauge   *metrics.Share
	changed func(context.Context) // is called without mu when doubt begins or ends

	mu       sync.Mutex
	missing  map[string]*missingPod // guarded by mu
	known    int                    // guarded by mu; how many pods the side should have
	left     int                    // guarded by mu; how many were missing in this doubt, and are not wanted any more
	began    time.Time              // guarded by mu; since when many are missing; zero: few are
	doubt    time.Time              // guarded by mu; since when, besides, nothing has spoken against it
	told     bool                   // guarded by mu; changed knows of the doubt
	reviewed time.Time              // guarded by mu
	listed   bool                   // guarded by mu; there was a complete list
}

// missingPod is a pod that one side lacks.
type missingPod struct {
	noted   time.Time
	seen    time.Time // noted last
	since   time.Time // since when nothing has spoken against it
	asked   bool      // for by name
	young   bool      // it may be too new to be shown: it counts only beside others
	decided bool      // it was in doubt for the whole period
}

func newQuarantine(side string, period time.Duration, gauge *metrics.Share, changed func(context.Context)) *quarantine {
	return &quarantine{side: side, period: period, gauge: gauge, changed: changed, missing: map[string]*missingPod{}}
}

// lackedPod is a pod that a list should have.
type lackedPod struct {
	key   string
	young bool
}

// note counts a pod as missing. asked says that it was asked for by name, young that it may be too new to be shown.
func (q *quarantine) note(key string, now time.Time, asked, young bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.noteLocked(key, now, asked, young)
}

func (q *quarantine) noteLocked(key string, now time.Time, asked, young bool) {
	m := q.missing[key]
	if m == nil {
		m = &missingPod{noted: now, since: now}
		q.missing[key] = m
	}
	m.seen, m.asked, m.young = now, m.asked || asked, young
}

// forget counts a pod no longer: it is there, has ended, or was dealt with.
func (q *quarantine) forget(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.missing, key)
}

// leave counts a pod no longer that is not wanted any more. That says nothing of the side: what is in doubt stays so.
func (q *quarantine) leave(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if m := q.missing[key]; m != nil && !m.decided && !m.young && !q.began.IsZero() {
		q.left++
		q.known = max(q.known-1, 0) // the next list does not count it
	}
	delete(q.missing, key)
}

// show counts a pod no longer that is there after all. What was thought of the others is doubtful then, too, if it was
// one of those that the doubt began with.
func (q *quarantine) show(key string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.showLocked(key, now)
}

func (q *quarantine) showLocked(key string, now time.Time) {
	m := q.missing[key]
	if m == nil {
		return
	}
	delete(q.missing, key)
	if m.asked && !m.decided && !q.began.IsZero() && !m.noted.After(q.began) {
		q.restart(now)
	}
}

// relisted takes a complete list: the keys that it has and those that it lacks of the pods that the side should have.
func (q *quarantine) relisted(ctx context.Context, has []string, lacks []lackedPod, now time.Time) {
	q.mu.Lock()
	for _, key := range has {
		q.showLocked(key, now)
	}
	for _, pod := range lacks {
		q.noteLocked(pod.key, now, false, pod.young)
	}
	for key, m := range q.missing {
		if now.Sub(m.seen) > q.period { // it went while the list was compared
			delete(q.missing, key)
		}
	}
	q.known, q.listed = len(has)+len(lacks), true
	q.reviewed = time.Time{}
	q.mu.Unlock()
	q.review(ctx, now)
}

// should takes how many pods the side should have, where no list says it.
func (q *quarantine) should(ctx context.Context, known int, now time.Time) {
	q.mu.Lock()
	q.known, q.listed, q.reviewed = known, true, time.Time{}
	q.mu.Unlock()
	q.review(ctx, now)
}

// oneMore counts a pod that the side should have since the last list.
func (q *quarantine) oneMore() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.known++
}

// silence lets what is in doubt begin anew: the side did not answer, which is no evidence.
func (q *quarantine) silence(now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.restart(now)
}

// restart is called with mu held.
func (q *quarantine) restart(now time.Time) {
	for _, m := range q.missing {
		m.since = now
	}
	if !q.began.IsZero() {
		q.doubt = now
	}
}

// hold returns for how long nothing may be done about a pod that is missing, 0 when it may. A
// doubtful one must be missing for the whole period even alone.
func (q *quarantine) hold(ctx context.Context, key string, doubtful bool, now time.Time) time.Duration {
	q.review(ctx, now)
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.listed {
		return lookAgain // nobody knows how many there should be
	}
	var left time.Duration
	m := q.missing[key]
	if !q.began.IsZero() && (m == nil || !m.decided) {
		left = q.doubt.Add(q.period).Sub(now)
	}
	if q.began.IsZero() && (m == nil || !m.decided) {
		if n, old := q.count(now, true); old > 0 && q.many(n, now) {
			left = lookAgain // the others are being asked for
		}
	}
	if m != nil && doubtful {
		left = max(left, m.since.Add(q.period).Sub(now))
	}
	return max(left, 0)
}

// review decides whether there is doubt. What it was in doubt about for the whole period is decided; what is missing
// later begins a doubt of its own.
func (q *quarantine) review(ctx context.Context, now time.Time) {
	q.mu.Lock()
	if past := now.Sub(q.reviewed); !q.listed || past >= 0 && past < reviewEvery && (q.began.IsZero() || now.Before(q.doubt.Add(q.period))) {
		q.mu.Unlock()
		return
	}
	q.reviewed = now
	n, old := q.count(now, false)
	switch {
	case !q.many(n, now) || old == 0:
		q.end()
	case q.began.IsZero():
		q.began, q.doubt = now, now
	case !now.Before(q.doubt.Add(q.period)):
		for _, m := range q.missing {
			m.decided = m.decided || q.counts(m, now)
		}
		q.end()
	}
	doubtful := !q.began.IsZero()
	news := doubtful != q.told
	q.told = doubtful
	if doubtful {
		q.gauge.Set(float64(n))
	} else {
		q.gauge.Set(0)
	}
	q.mu.Unlock()
	if news {
		q.changed(ctx)
	}
}

// end ends the doubt. It is called with mu held.
func (q *quarantine) end() {
	q.began, q.doubt, q.left = time.Time{}, time.Time{}, 0
}

// many reports whether n missing pods are many. Those that may be too new to be shown, and were not asked for, speak neither for the
// side nor against it. It is called with mu held.
func (q *quarantine) many(n int, now time.Time) bool {
	known := q.known + q.left
	for _, m := range q.missing {
		if m.young && !m.decided && !q.counts(m, now) {
			known--
		}
	}
	return n > manyAbove && n*manyFraction > known || n > 1 && n*2 > known
}

// count returns how many pods are missing and not decided about, or were when they left, and how many of them are not young; all says
// that those that have not been asked for count, too. It is called with mu held.
func (q *quarantine) count(now time.Time, all bool) (n, old int) {
	n, old = q.left, q.left
	for _, m := range q.missing {
		if m.decided || !all && !q.counts(m, now) {
			continue
		}
		n++
		if !m.young {
			old++
		}
	}
	return n, old
}

func (q *quarantine) counts(m *missingPod, now time.Time) bool {
	return m.asked || now.Sub(m.noted) >= unasked
}

// message says what is in doubt, "" if nothing is.
func (q *quarantine) message(now time.Time) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.began.IsZero() {
		return ""
	}
	n, _ := q.count(now, false)
	return fmt.Sprintf("%s lacks %d of %d pods, and nobody was seen to delete them: they are left as they are until it has said so for %v", q.side, n, max(q.known+q.left, n), q.period)
}

// forgetAll begins anew.
func (q *quarantine) forgetAll(ctx context.Context, now time.Time) {
	q.mu.Lock()
	clear(q.missing)
	q.left, q.reviewed = 0, time.Time{}
	q.mu.Unlock()
	q.review(ctx, now)
}
