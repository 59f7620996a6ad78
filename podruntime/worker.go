// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

// worker owns one pod: it alone decides about it. Slow work runs on other goroutines, which put their outcome
// into the inbox.
type worker struct {
	workers         *workers
	exec            *executor
	uid             types.UID
	namespace, name string
	born            time.Time
	wake            chan struct{} // holds a token when there is something in the inbox
	settled         chan struct{} // closed when the initial state of the runtime is known

	mu        sync.Mutex
	inbox     inbox                 // guarded by mu
	ended     bool                  // guarded by mu: no remains of the pod are left
	shown     *corev1.Pod           // guarded by mu: the last reported pod; nil: no state is known yet
	asked     int                   // guarded by mu: number of requests of the pod controller
	reflected int                   // guarded by mu: number of requests included in shown
	fresh     chan struct{}         // guarded by mu: closed when reflected grows
	places    map[string][]instance // guarded by mu: the instances of each container, the last one first
	ready     string                // guarded by mu: the ready sandbox
	boxed     bool                  // guarded by mu: the runtime has a sandbox of the pod

	// owned by run
	pod        *corev1.Pod // never changed, but replaced
	full       bool        // pod has the whole spec, not only the part in its sandbox
	reported   bool        // the status of pod is our own
	mem        plan.Memory
	seen       view
	starts     map[string]context.CancelFunc // by container; "" is the sandbox
	pending    int                           // started actions that have not ended
	absorbed   int                           // see asked
	failures   int                           // consecutive failures of reads from the runtime
	refreshing bool
	refreshAt  time.Time // of the volumes; zero until they are set up
	measuring  bool
	measureAt  time.Time // of the volumes
}

// inbox has the worker's input since its last look.
type inbox struct {
	pod      *corev1.Pod
	stop     *stopRequest
	list     *listed
	touched  []string // IDs with an event of the runtime
	done     []done
	refresh  *time.Duration // the volumes were refreshed; the wait until the next refresh
	measured *string        // the exceeded volume limit; "" is none
	evict    *plan.Eviction // the machine has too little left for the pod
	reclaim  bool           // the machine has too little left for the containers of an ended pod
	controls int            // requests of the pod controller
}

// stopRequest has the time for the pod to end.
type stopRequest struct {
	grace time.Duration
	at    time.Time
}

// done is an ended action.
type done struct {
	action  plan.Action
	outcome plan.Outcome
	at      time.Time
}

func newWorker(all *workers, uid types.UID, namespace, name string) *worker {
	return &worker{
		workers: all, exec: all.exec, uid: uid, namespace: namespace, name: name, born: time.Now(),
		wake: make(chan struct{}, 1), settled: make(chan struct{}), fresh: make(chan struct{}),
		starts: map[string]context.CancelFunc{}, seen: newView(),
	}
}

// changeInbox changes the inbox and wakes the worker. It reports false if the worker has ended.
func (w *worker) changeInbox(change func(*inbox)) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	before := w.inbox.controls
	change(&w.inbox)
	w.asked += w.inbox.controls - before
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return true
}

func (w *worker) takeInbox() inbox {
	w.mu.Lock()
	defer w.mu.Unlock()
	in := w.inbox
	w.inbox = inbox{}
	return in
}

// run works on the pod until nothing of it is left, or ctx ends.
func (w *worker) run(ctx context.Context) {
	select {
	case <-w.workers.lists.first: // the state from an earlier process is in the inbox
	case <-ctx.Done():
		return
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		again, gone := w.runPass(ctx)
		if gone && w.endUnlessInput() {
			return
		}
		timer.Reset(again)
		select {
		case <-w.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// idle is the longest time between two looks at a pod without news and plans.
const idle = 10 * time.Minute

// runPass takes the input, reads the runtime, begins the next actions and reports. It returns the time until the
// next look.
func (w *worker) runPass(ctx context.Context) (again time.Duration, gone bool) {
	w.absorbInput(w.takeInbox())
	if err := w.readChanges(ctx); err != nil {
		// A missing answer is no reason to act, or to report another status than before.
		if w.failures++; w.failures == 1 && ctx.Err() == nil {
			log.G(ctx).WithField("pod", w.namespace+"/"+w.name).WithError(err).Warn("the pod is left as it is until the container runtime tells of it")
		}
		if w.failures >= 3 || time.Since(w.born) > readTimeout/2 {
			w.showUnread()
		}
		w.releaseWaiters()
		return min(time.Second<<min(w.failures-1, 4), 10*time.Second), false
	}
	w.failures = 0
	if w.pod == nil {
		return 0, true // a list had the pod, which is gone since
	}
	again, gone = w.beginActions(ctx)
	w.reportStatus(time.Now())
	if gone {
		w.sweepPod(ctx)
	}
	return again, gone
}

// sweepPod forgets the pod, and removes its files.
func (w *worker) sweepPod(ctx context.Context) {
	if err := w.workers.files.removeFiles(w.pod); err != nil {
		log.G(ctx).WithField("pod", w.namespace+"/"+w.name).WithError(err).Warn("remove what is left on disk of a pod that is gone; it is tried again")
	}
	w.exec.puller.Forget(w.uid)
}

// endWait ends the wait of callers when the runtime's state is known, or cannot be known.
func (w *worker) endWait() {
	select {
	case <-w.settled:
	default:
		close(w.settled)
	}
}

// showUnread shows that the pod exists while the runtime cannot tell its state: callers of GetPods must neither wait
// for it nor take it for gone.
func (w *worker) showUnread() {
	w.mu.Lock()
	if w.shown == nil {
		w.shown = w.pod
	}
	if w.shown == nil {
		w.shown = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.name, UID: w.uid}}
	}
	w.mu.Unlock()
	w.endWait()
}

// endUnlessInput forgets the worker, unless new input came meanwhile.
func (w *worker) endUnlessInput() bool {
	w.mu.Lock()
	if in := &w.inbox; in.pod != nil || in.stop != nil && w.pod == nil || len(in.done) > 0 || in.list.hasObjects() {
		w.mu.Unlock()
		return false
	}
	w.ended = true
	close(w.fresh)
	w.mu.Unlock()
	w.endWait()
	w.workers.meter.forgetPod(w.uid)
	w.workers.dropWorker(w)
	return true
}
