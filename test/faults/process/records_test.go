// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
)

// records holds the history of both sides, the API server and the backend, by the name of the pod. A finished
// name is judged and forgotten, so that hours of churn fit into memory.
type records struct {
	began time.Time

	mu         sync.Mutex
	seq        int64            // guarded by mu
	names      map[string]*life // guarded by mu
	changed    chan struct{}    // guarded by mu; closed at the next change
	violations []string         // guarded by mu
	pods       int              // guarded by mu; UIDs seen
	calls      int              // guarded by mu; of the provider that change something
	creates    int              // guarded by mu; instances that were started
	perMinute  map[int]int      // guarded by mu; UIDs by the minute in which they came
}

// life is the record of one name. It is guarded by the mutex of the records.
type life struct {
	name    string
	pods    map[types.UID]*podRecord
	history ledger.History
	over    bool // the test does not use the name again
	touched time.Time
	changed chan struct{} // closed at the next change
}

// podRecord is the state of one pod on both sides. It is guarded by the mutex of the records.
type podRecord struct {
	uid     types.UID
	api     *corev1.Pod // newest; also when it is gone
	gone    bool        // from the API server
	forced  bool        // the test deleted it without grace
	asked   time.Time   // when the test deleted it
	live    int         // instances
	started int
	status  *corev1.PodStatus // newest at the backend
	stepped time.Time         // when both sides last agreed
}

func newRecords() *records {
	return &records{names: map[string]*life{}, changed: make(chan struct{}), perMinute: map[int]int{}, began: time.Now()}
}

// next returns a channel that is closed at the next change.
func (r *records) next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// of returns the record of a name and the record of a pod with this name. The caller holds mu.
func (r *records) of(name string, uid types.UID) (*life, *podRecord) {
	l := r.names[name]
	if l == nil {
		l = &life{name: name, pods: map[types.UID]*podRecord{}, changed: make(chan struct{}), history: ledger.History{Forced: map[types.UID]bool{}}}
		r.names[name] = l
	}
	p := l.pods[uid]
	if p == nil && uid != "" {
		p = &podRecord{uid: uid}
		l.pods[uid] = p
		r.pods++
		r.perMinute[int(time.Since(r.began)/time.Minute)]++
	}
	return l, p
}

// number returns the next sequence number. The caller holds mu.
func (r *records) number() int64 {
	r.seq++
	return r.seq
}

// touch wakes the goroutines that wait for this name or for any change. The caller holds mu.
func (r *records) touch(l *life, p *podRecord) {
	l.touched = time.Now()
	if p.inStep() {
		p.stepped = l.touched
	}
	close(l.changed)
	l.changed = make(chan struct{})
	close(r.changed)
	r.changed = make(chan struct{})
}

// entry records an action of the backend.
func (r *records) entry(e ledger.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Seq, e.At = r.number(), time.Now()
	l, p := r.of(e.Name, e.UID)
	l.history.Ledger = append(l.history.Ledger, e)
	switch e.Verb {
	case ledger.Start:
		p.live++
		p.started++
		r.creates++
	case ledger.Stop:
		p.live--
	case ledger.Status:
		p.status = e.Status
	default:
		if e.Step == ledger.Begin {
			r.calls++
		}
	}
	r.touch(l, p)
}

// event records an event of the API server. It first records the writes of other writers since the last event.
func (r *records) event(kind watch.EventType, pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pod.ManagedFields = nil
	l, p := r.of(pod.Name, pod.UID)
	h := &l.history
	for _, w := range foreignWrites(p.api, pod) {
		w.Seq, w.At = r.number(), time.Now()
		h.Foreign = append(h.Foreign, w)
	}
	h.API = append(h.API, ledger.Event{Seq: r.number(), At: time.Now(), Type: kind, Pod: pod})
	p.api, p.gone = pod, kind == watch.Deleted
	r.touch(l, p)
}

// asked records that the test is about to delete a pod.
func (r *records) asked(name string, uid types.UID, forced bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, p := r.of(name, uid)
	p.asked, p.forced = time.Now(), forced
	l.history.Forced[uid] = forced
}

// over records that the test does not use the name again.
func (r *records) over(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, _ := r.of(name, "")
	l.over = true
}

// look calls done for one pod, with mu held, once the API server has had the pod.
func (r *records) look(name string, uid types.UID, done func(*podRecord) bool) (changed <-chan struct{}, is bool, state string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, p := r.of(name, uid)
	return l.changed, p.api != nil && done(p), p.describe(name)
}

// inStep reports whether both sides agree on the pod.
func (p *podRecord) inStep() bool {
	switch {
	case p.gone:
		return p.live == 0
	case p.api == nil || p.api.DeletionTimestamp != nil:
		return false
	}
	return p.status != nil && p.api.Status.Phase == p.status.Phase && p.api.Status.Message == p.status.Message
}

// outOfStep returns the pods on which the two sides do not agree. If quick is true, it leaves out every name with a forced deletion: if the
// daemon did not see such a deletion, the instance keeps running for the time of a quarantine.
func (r *records) outOfStep(quick bool) (pods []*podRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.names {
		if quick && l.wasForced() {
			continue
		}
		for _, p := range l.pods {
			if !p.inStep() {
				pods = append(pods, p)
			}
		}
	}
	return pods
}

// describe lists the pods that are not in step.
func (r *records) describe() (text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, l := range r.names {
		for _, p := range l.pods {
			if p.inStep() {
				continue
			}
			if n++; n <= 10 {
				text += p.describe(l.name) + "\n"
			}
		}
	}
	return fmt.Sprintf("%d pods are not in step:\n%s", n, text)
}

func (l *life) wasForced() bool {
	for _, forced := range l.history.Forced {
		if forced {
			return true
		}
	}
	return false
}

func (p *podRecord) describe(name string) string {
	text := fmt.Sprintf("%s uid=%s gone=%v forced=%v asked=%v live=%d started=%d", name, p.uid, p.gone, p.forced, !p.asked.IsZero(), p.live, p.started)
	if p.status != nil {
		text += fmt.Sprintf(" backend=%s %q", p.status.Phase, p.status.Message)
	}
	if p.api != nil {
		text += fmt.Sprintf(" api=%s %s %q deleting=%v", p.api.Status.Phase, p.api.Status.Reason, p.api.Status.Message, p.api.DeletionTimestamp != nil)
	}
	return text
}
