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
	// manyAbove and manyFraction define when pods are many: more than ten and more than a fifth of all, or several pods that are more than
	// half of all.
	manyAbove    = 10
	manyFraction = 5
	// unasked is the time for which a pod that a list lacks does not count unless the backend was asked for it by name: some providers
	// never list pods.
	unasked = 5 * time.Second
	// together limits the doubt when a missing pod reappears: the times of other missing pods restart if they went missing at most this
	// long before the pod that reappears.
	together = 10 * time.Second
	// reviewEvery is the shortest interval between two counts of the pods, because there may be thousands.
	reviewEvery = time.Second
)

// quarantine tracks the pods that one side lacks although their removal was not observed. Many such pods at once cast doubt on that side:
// it may be a restored backup, an incomplete cache, or an unavailable region. Each pod has its own time. While many are missing, the node
// does not act on a pod until it reappears or the side has lacked it for the whole period. If the side does not answer, the time restarts.
// It also restarts if another pod that went missing at the same time reappears.
type quarantine struct {
	side    string // the side that lacks the pods
	period  time.Duration
	held    metrics.Value         // number of pods that are held back
	changed func(context.Context) // called without mu when many pods begin or cease to be missing

	mu       sync.Mutex
	missing  map[string]*missingPod // guarded by mu
	known    int                    // guarded by mu; number of pods that the side should have
	many     bool                   // guarded by mu; many were missing at the last review
	reviewed time.Time              // guarded by mu
	listed   bool                   // guarded by mu; there was a complete list
}

// missingPod is a pod that one side lacks.
type missingPod struct {
	noted    time.Time
	seen     time.Time // the last time that its absence was noted
	since    time.Time // since when no evidence contradicts the absence
	asked    bool      // the side was asked for the pod by name
	young    bool      // it may be too new to be visible: it counts only together with others
	unwanted bool      // the pod is no longer wanted, but counts until its time is over: it is still evidence about the side
}

func newQuarantine(side string, period time.Duration, changed func(context.Context)) *quarantine {
	return &quarantine{side: side, period: period, changed: changed, missing: map[string]*missingPod{}}
}

// lackedPod is a pod missing from a list.
type lackedPod struct {
	key   string
	young bool
}

// noteMissing counts a pod as missing. asked means that the side was asked for it by name, young that it may be too new to be visible.
func (q *quarantine) noteMissing(key string, now time.Time, asked, young bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.noteLocked(key, now, asked, young)
}

func (q *quarantine) noteLocked(key string, now time.Time, asked, young bool) {
	m := q.missing[key]
	if m == nil || m.unwanted {
		left := m != nil // it is missing again, for example after users deleted it, and still counts
		m = &missingPod{noted: now, since: now, asked: left && m.asked && !young}
		q.missing[key] = m
		if left {
			q.known++
		}
	}
	m.seen, m.asked, m.young = now, m.asked || asked, young
}

// forgetPod stops counting a pod: it exists, has ended, or was handled.
func (q *quarantine) forgetPod(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if m := q.missing[key]; m != nil && !m.unwanted {
		delete(q.missing, key)
	}
}

// releaseUnwanted releases a pod that is no longer wanted. This proves nothing about the side: while many are missing, the pod still counts
// until its time is over.
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

// showPod stops counting a pod that has reappeared. This casts doubt on the absence of the pods that went missing with it.
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

// takeList handles a complete list. has are the keys of the expected pods in the list, lacks the expected pods that are missing.
func (q *quarantine) takeList(ctx context.Context, has []string, lacks []lackedPod, now time.Time) {
	q.mu.Lock()
	for _, key := range has {
		q.showLocked(key, now)
	}
	for _, pod := range lacks {
		q.noteLocked(pod.key, now, false, pod.young)
	}
	for key, m := range q.missing {
		if !m.unwanted && now.Sub(m.seen) > q.period { // the pod went away while the list was compared
			delete(q.missing, key)
		}
	}
	q.known, q.listed = len(has)+len(lacks), true
	q.reviewed = time.Time{}
	q.mu.Unlock()
	q.reviewCount(ctx, now)
}

// setKnown sets the number of pods that the side should have, if no list shows it.
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

// restartAll restarts the time of each pod after the side did not answer.
func (q *quarantine) restartAll(now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.restartSome(now, func(*missingPod) bool { return true })
}

// restartSome restarts the time of the undecided missing pods for which of returns true. The caller holds mu.
func (q *quarantine) restartSome(now time.Time, of func(*missingPod) bool) {
	for _, m := range q.missing {
		if !m.unwanted && !q.isDecided(m, now) && of(m) {
			m.since = now
		}
	}
}

// holdFor returns the time for which the node must not act on a missing pod, or 0. A doubtful pod must be missing for the whole period even
// if it is the only one. The same applies to every pod until there was a list.
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
		return min(left, lookAgain) // the backend is being asked for the other pods
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

// isDecided reports whether the side has lacked the pod for the whole period. The caller holds mu.
func (q *quarantine) isDecided(m *missingPod, now time.Time) bool {
	return !now.Before(m.since.Add(q.period))
}

// areMany reports whether n missing pods are many. Pods that may be too new to be visible, and were not asked for, prove nothing about the
// side. The caller holds mu.
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

// shouldHave returns the number of pods that the side should have, including unwanted pods that still count. The caller holds mu.
func (q *quarantine) shouldHave() int {
	known := q.known
	for _, m := range q.missing {
		if m.unwanted {
			known++
		}
	}
	return known
}

// count returns the number of undecided missing pods, and the number of them that are not young. With all, it includes pods that were not
// asked for. The caller holds mu.
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

// forgetAll resets the quarantine.
func (q *quarantine) forgetAll(ctx context.Context, now time.Time) {
	q.mu.Lock()
	clear(q.missing)
	q.reviewed = time.Time{}
	q.mu.Unlock()
	q.reviewCount(ctx, now)
}
