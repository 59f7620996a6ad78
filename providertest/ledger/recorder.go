// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"encoding/json"
	"io"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Recorder records both histories as they happen, in one order. All its methods may be called at the same time.
// The zero value is ready for use.
type Recorder struct {
	// To, if it is set before the first entry, gets each entry at once, as a line of JSON that Read understands.
	To io.Writer

	mu      sync.Mutex
	seq     int64              // guarded by mu
	history History            // guarded by mu
	retired map[types.UID]bool // guarded by mu
	err     error              // guarded by mu; of To
}

// Add records an entry, gives it the next number and the time, and returns the number.
func (r *Recorder) Add(e Entry) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	e.Seq = r.seq
	if e.At.IsZero() {
		e.At = time.Now()
	}
	r.history.Ledger = append(r.history.Ledger, e)
	if r.To != nil {
		if err := json.NewEncoder(r.To).Encode(&e); err != nil && r.err == nil {
			r.err = err
		}
	}
	return e.Seq
}

// Saw records an event of the API server. It keeps the pod. Do not change the pod afterwards.
func (r *Recorder) Saw(kind watch.EventType, pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	r.history.API = append(r.history.API, Event{Seq: r.seq, At: time.Now(), Type: kind, Pod: pod})
}

// Restored records that the API server lost its state of a pod since some time, for example by restoring a
// backup. Later events of the pod are not judged by earlier events.
func (r *Recorder) Restored(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.API = slices.DeleteFunc(r.history.API, func(e Event) bool { return e.Pod.UID == uid })
	r.history.Foreign = slices.DeleteFunc(r.history.Foreign, func(w ForeignWrite) bool { return w.UID == uid })
}

// Wrote records that another client than the node changed a pod, from before to after.
func (r *Recorder) Wrote(before, after *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range Writes(before, after, time.Now()) {
		r.seq++
		w.Seq = r.seq
		r.history.Foreign = append(r.history.Foreign, w)
	}
}

// Force records that another client than the node removed a pod from the API server, without waiting for its
// stop.
func (r *Recorder) Force(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.history.Forced == nil {
		r.history.Forced = map[types.UID]bool{}
	}
	r.history.Forced[uid] = true
}

// Drain records that the node is told to stop its pods for good.
func (r *Recorder) Drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.history.Drained.IsZero() {
		r.history.Drained = time.Now()
	}
}

// History returns the history until now.
func (r *Recorder) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.history
	h.Ledger, h.API, h.Foreign = slices.Clone(h.Ledger), slices.Clone(h.API), slices.Clone(h.Foreign)
	h.Forced = map[types.UID]bool{}
	for uid := range r.history.Forced {
		h.Forced[uid] = true
	}
	h.End = time.Now()
	return h
}

// Err returns the first error of writing To.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Retire judges pods that are gone on both sides, together with all pods that ever had their names, and forgets
// them, so that a test may last for days. An instance that starts for such a pod afterwards breaks S4. A pod
// with a running instance is not retired.
func (r *Recorder) Retire(gone ...types.UID) []Violation {
	r.mu.Lock()
	defer r.mu.Unlock()
	live := map[types.UID]int{}
	for i := range r.history.Ledger {
		switch e := &r.history.Ledger[i]; e.Verb {
		case Start:
			live[e.UID]++
		case Stop:
			live[e.UID]--
		default:
		}
	}
	out := r.retiredStarts()
	going := map[types.UID]bool{}
	for _, uid := range gone {
		if live[uid] <= 0 {
			going[uid] = true
		}
	}
	out = append(out, Check(r.historyOf(going))...)
	if r.retired == nil {
		r.retired = map[types.UID]bool{}
	}
	for uid := range going {
		r.retired[uid] = true
		delete(r.history.Forced, uid)
	}
	h := &r.history
	h.Ledger = slices.DeleteFunc(h.Ledger, func(e Entry) bool { return r.retired[e.UID] })
	h.API = slices.DeleteFunc(h.API, func(e Event) bool { return r.retired[e.Pod.UID] })
	h.Foreign = slices.DeleteFunc(h.Foreign, func(w ForeignWrite) bool { return r.retired[w.UID] })
	return out
}

// retiredStarts returns the starts of retired pods.
func (r *Recorder) retiredStarts() (out []Violation) {
	for i := range r.history.Ledger {
		if e := &r.history.Ledger[i]; e.Verb == Start && !e.Injected && r.retired[e.UID] {
			out = append(out, ofEntry("S4", e, "instance %s starts although the pod is gone on both sides", e.Instance))
		}
	}
	return out
}

// historyOf returns the part of the history with the names of these pods.
func (r *Recorder) historyOf(pods map[types.UID]bool) History {
	keys := map[string]bool{}
	for i := range r.history.Ledger {
		if e := &r.history.Ledger[i]; pods[e.UID] {
			keys[e.Key()] = true
		}
	}
	part := History{Drained: r.history.Drained, Forced: r.history.Forced, Foreign: r.history.Foreign, End: time.Now()}
	for _, e := range r.history.Ledger {
		if keys[e.Key()] {
			part.Ledger = append(part.Ledger, e)
		}
	}
	for _, e := range r.history.API {
		if pods[e.Pod.UID] || keys[e.Pod.Namespace+"/"+e.Pod.Name] {
			part.API = append(part.API, e)
		}
	}
	return part
}
