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
	// manyAbove and manyFraction define many: more than ten and more than a fifth of all, or several pods that
	// are more than half of all.
	manyAbove    = 10
	manyFraction = 5
	// unasked is how long a pod that a list lacks does not count before the backend was asked for it by name:
	// some providers list no pods at all.
	unasked = 5 * time.Second
	// together limits the doubt when a missing pod shows again. The doubt extends to other missing pods if the
	// pod that shows went missing at most this time after them.
	together = 10 * time.Second
	// reviewEvery is the shortest interval between two counts of the pods, because there may be thousands.
	reviewEvery = time.Second
)

// quarantine keeps the pods that one side lacks although their removal was not seen. Many such pods at once cast
// doubt on that side: a restored backup, a cache that is not filled, a region that does not answer. Each pod has
// its own time. While many are missing, the node does nothing about a pod before the pod shows again or the side
// has denied it for the whole period. Silence of the side starts that time again. So does another pod that went
// missing at the same time and shows again.
type quarantine struct {
	side    string // the side that lacks the pods
	period  time.Duration
	held    metrics.Value         // how many pods are held back
	changed func(context.Context) // called without mu when many pods are missing, and when no longer

	mu       sync.Mutex
	missing  map[string]*missingPod // guarded by mu
	known    int                    // guarded by mu; how many pods the side should have
	many     bool                   // guarded by mu; many were missing at the last review
	reviewed time.Time              // guarded by mu
	listed   bool                   // guarded by mu; there was a complete list
}

// missingPod is a pod that one side lacks.
type missingPod struct {
	noted    time.Time
	seen     time.Time // the last time that it was noted
	since    time.Time // since when no evidence contradicts the absence
	asked    bool      // the side was asked for it by name
	young    bool      // it may be too new to be shown: it counts only together with others
	unwanted bool      // the pod is not wanted any more, but counts until its time is over: the evidence about the side stays true
}

func newQuarantine(side string, period time.Duration, changed func(context.Context)) *quarantine {
	return &quarantine{side: side, period: period, changed: changed, missing: map[string]*missingPod{}}
}

// lackedPod is a pod missing from a list.
type lackedPod struct {
	key   string
	young bool
}

// noteMissing counts a pod as missing. asked reports whether the side was asked for it by name, young whether it may be
// too new to be shown.
func (q *quarantine) noteMissing(key string, now time.Time, asked, young bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.noteLocked(key, now, asked, young)
}

func (q *quarantine) noteLocked(key string, now time.Time, asked, young bool) {
	m := q.missing[key]
	if m == nil || m.unwanted {
		left := m != nil // it is denied again, for example after users deleted it, and goes on to count
		m = &missingPod{noted: now, since: now, asked: left && m.asked && !young}
		q.missing[key] = m
		if left {
			q.known++
		}
	}
	m.seen, m.asked, m.young = now, m.asked || asked, young
}

// forgetPod stops counting a pod: it exists, has ended, or was dealt with.
func (q *quarantine) forgetPod(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if m := q.missing[key]; m != nil && !m.unwanted {
		delete(q.missing, key)
	}
}

// releaseUnwanted releases a pod that is not wanted any more. This proves nothing about the side: where many are missing,
// the pod counts until its time is over.
func (q *quarantine) releaseUnwanted(key string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.missing[key]
	if m == nil || m.unwanted {
		return
	}
	if m.young || !q.many || q.isDecided(m, now) {
		delete(q.missing, key)
		return
	}
	m.unwanted = true
	q.known = max(q.known-1, 0) // the next list does not count the pod
}

// showPod stops counting a pod that exists after all. This casts doubt on the absence of the pods that went missing
// with it.
func (q *quarantine) showPod(key string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.showLocked(key, now)
}

func (q *quarantine) showLocked(key string, now time.Time) {
	m := q.missing[key]
	if m == nil || m.unwanted {
		return
	}
	delete(q.missing, key)
	if m.asked && !q.isDecided(m, now) {
		q.restartSome(now, func(other *missingPod) bool { return !m.noted.After(other.noted.Add(together)) })
	}
}

// takeList takes over a complete list. Of the pods that the side should have, has are the keys in the list and
// lacks the missing pods.
func (q *quarantine) takeList(ctx context.Context, has []string, lacks []lackedPod, now time.Time) {
	q.mu.Lock()
	for _, key := range has {
		q.showLocked(key, now)
	}
	for _, pod := range lacks {
		q.noteLocked(pod.key, now, false, pod.young)
	}
	for key, m := range q.missing {
		if !m.unwanted && now.Sub(m.seen) > q.period { // the pod went while the list was compared
			delete(q.missing, key)
		}
	}
	q.known, q.listed = len(has)+len(lacks), true
	q.reviewed = time.Time{}
	q.mu.Unlock()
	q.reviewCount(ctx, now)
}

// setKnown sets how many pods the side should have, where no list shows it.
func (q *quarantine) setKnown(ctx context.Context, known int, now time.Time) {
	q.mu.Lock()
	q.known, q.listed, q.reviewed = known, true, time.Time{}
	q.mu.Unlock()
	q.reviewCount(ctx, now)
}

// oneMore counts a pod that the side should have since the last list.
func (q *quarantine) oneMore() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.known++
}

// restartAll starts the time of each pod again: the side did not answer, and silence is no evidence.
func (q *quarantine) restartAll(now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.restartSome(now, func(*missingPod) bool { return true })
}

// restartSome starts the time of those pods again that are still missing and not decided. The caller holds mu.
func (q *quarantine) restartSome(now time.Time, of func(*missingPod) bool) {
	for _, m := range q.missing {
		if !m.unwanted && !q.isDecided(m, now) && of(m) {
			m.since = now
		}
	}
}

// holdFor returns how long the node must do nothing about a missing pod, 0 if it may act. A doubtful pod must be
// missing for the whole period even alone. So must any pod while there was no list.
func (q *quarantine) holdFor(ctx context.Context, key string, doubtful bool, now time.Time) time.Duration {
	q.reviewCount(ctx, now)
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.missing[key]
	switch {
	case q.listed:
	case m == nil:
		return lookAgain // the expected number of pods is unknown
	default:
		return max(m.noted.Add(q.period).Sub(now), 0)
	}
	left := q.period
	if m != nil {
		left = max(m.since.Add(q.period).Sub(now), 0)
		if doubtful {
			return left
		}
	}
	if q.many {
		return left
	}
	if n, old := q.count(now, true); old > 0 && q.areMany(n, now) {
		return min(left, lookAgain) // the other pods are being looked up
	}
	return 0
}

// reviewCount counts the missing pods.
func (q *quarantine) reviewCount(ctx context.Context, now time.Time) {
	q.mu.Lock()
	if past := now.Sub(q.reviewed); !q.listed || past >= 0 && past < reviewEvery {
		q.mu.Unlock()
		return
	}
	q.reviewed = now
	for key, m := range q.missing {
		if m.unwanted && q.isDecided(m, now) {
			delete(q.missing, key)
		}
	}
	n, old := q.count(now, false)
	before := q.many
	q.many = old > 0 && q.areMany(n, now)
	if q.many {
		q.held.Set(float64(n))
	} else {
		q.held.Set(0)
	}
	news := q.many != before
	q.mu.Unlock()
	if news {
		q.changed(ctx)
	}
}

// isDecided reports whether the side has denied the pod for the whole period. The caller holds mu.
func (q *quarantine) isDecided(m *missingPod, now time.Time) bool {
	return !now.Before(m.since.Add(q.period))
}

// areMany reports whether n missing pods are many. Pods that may be too new to be shown, and were not asked for,
// prove nothing about the side. The caller holds mu.
func (q *quarantine) areMany(n int, now time.Time) bool {
	known := q.shouldHave()
	for _, m := range q.missing {
		if m.young && !q.isDecided(m, now) && !q.isCounted(m, now) {
			known--
		}
	}
	if n > manyAbove {
		return n*manyFraction > known
	}
	return n > 1 && n*2 > known
}

// shouldHave returns how many pods the side should have, including unwanted pods that still count. The caller
// holds mu.
func (q *quarantine) shouldHave() int {
	known := q.known
	for _, m := range q.missing {
		if m.unwanted {
			known++
		}
	}
	return known
}

// count returns how many pods are missing and not decided, and how many of them are not young. With all, pods
// that were not asked for count, too. The caller holds mu.
func (q *quarantine) count(now time.Time, all bool) (n, old int) {
	for _, m := range q.missing {
		if q.isDecided(m, now) || !all && !q.isCounted(m, now) {
			continue
		}
		n++
		if !m.young {
			old++
		}
	}
	return n, old
}

func (q *quarantine) isCounted(m *missingPod, now time.Time) bool {
	return m.asked || now.Sub(m.noted) >= unasked
}

// message returns the text about the number of missing pods, or "" if they are not many.
func (q *quarantine) message(now time.Time) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.many {
		return ""
	}
	n, _ := q.count(now, false)
	return fmt.Sprintf("%s lacks %d of %d pods, and nobody was seen to delete them: each is left as it is until it has been denied for %v", q.side, n, max(q.shouldHave(), n), q.period)
}

// hasList reports whether there was a complete list.
func (q *quarantine) hasList() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.listed
}

// forgetAll starts the quarantine again.
func (q *quarantine) forgetAll(ctx context.Context, now time.Time) {
	q.mu.Lock()
	clear(q.missing)
	q.reviewed = time.Time{}
	q.mu.Unlock()
	q.reviewCount(ctx, now)
}
