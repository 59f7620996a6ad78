// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

const (
	// simQuarantine is MissingPodsQuarantine.
	simQuarantine = time.Minute
	// shortLie is shorter than the evidence that the loss of one pod takes: if both the list
	// and the read of a pod deny it for longer, it is lost.
	shortLie = 8 * time.Second
	// truthBetween is how long nothing lies after a lie, so that the controller can find out:
	// what is denied whenever it looks is lost.
	truthBetween = time.Minute
)

// lie lets lists lie, and reads of pods with them if all may lie.
//
// A provider that only answers has no other word than its lists: an old status counts until the
// next, so its lists are never stale.
func (w *simWorld) lie(s simStep) {
	l := memory.Lie{Empty: s.Arg%3 == 0, Page: s.Arg % 3, Stale: s.Arg >= 3 && !w.plan.Silent}
	switch w.plan.Lies {
	case noLies:
	case listsLie:
		l.Times = 1 + s.Pod
		w.backend.Lie(l)
	case allLie:
		if time.Since(w.lieEnds) < truthBetween || w.showsJustNow() {
			return
		}
		if w.plan.StopTime > 0 {
			// What was told to stop and is nowhere to be seen has stopped, by the contract: only
			// the list that has nothing at all is known to be none.
			l = memory.Lie{Empty: true}
		}
		l.Reads = s.Pod > 0 && w.plan.StopTime == 0
		w.deny(l, s)
	}
}

// listed notes of which pods a list says that they run although they do not run any more.
func (w *simWorld) listed(pods []*corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range pods {
		running := len(w.backend.Instances(p.UID)) > 0
		if w.plan.KeepsNoUID {
			is := w.backend.Has(memory.Key(p))
			running = is != nil && !lifecycle.Terminal(&is.Status)
		}
		if !running && !lifecycle.Terminal(&p.Status) {
			w.oldLists[memory.Key(p)+" "+string(p.UID)]++
		}
	}
}

// showsJustNow reports whether the backend has shown a pod for the first time only now, or will soon. A lie would hide it for longer than a
// pod may be hidden: who has not looked in between has no reason to think that it was ever there.
func (w *simWorld) showsJustNow() bool {
	if w.plan.ShowsAfter == 0 {
		return false
	}
	for _, e := range w.backend.Ledger() {
		age := time.Since(e.At)
		if e.Verb == ledger.Start && age > w.visibleWithin()-shortLie && age < w.visibleWithin() {
			return true
		}
	}
	return false
}

// visibleWithin is PodVisibilityTimeout.
func (w *simWorld) visibleWithin() time.Duration {
	return max(30*time.Second, w.plan.ShowsAfter+10*time.Second)
}

// restartBlind restarts the daemon with a provider whose cache is not filled: it has no pods for a
// while, whatever is asked.
func (w *simWorld) restartBlind(s simStep) {
	if w.plan.Lies != allLie || w.plan.StopTime > 0 {
		return
	}
	w.end()
	w.deny(memory.Lie{Empty: true, Reads: true, Deletes: s.Pod == 2}, s)
	w.start()
}

// deny begins a lie, which is short but for one that all of several pods are gone.
func (w *simWorld) deny(l memory.Lie, s simStep) {
	l.For = shortLie
	if w.blind = l.Empty && w.several(); w.blind {
		l.For = time.Duration(20+5*s.Arg) * time.Second // up to 45 s, less than the quarantine
	}
	w.lieEnds = time.Now().Add(l.For)
	if l.Reads {
		w.denials = append(w.denials, simSpan{time.Now(), w.lieEnds})
	}
	w.backend.Truth()
	w.backend.Lie(l)
}

// see ends a lie about all of several pods that has become one about a single pod.
func (w *simWorld) see() {
	if w.blind && !w.several() {
		w.backend.Truth()
		w.blind, w.lieEnds = false, time.Now()
	}
}

// several reports whether more than one pod is known to run on both sides.
func (w *simWorld) several() bool {
	n := 0
	for i := range simPods {
		api, backend := w.api.Pod("d", fmt.Sprint("p", i)), w.backend.Has(fmt.Sprint("d/p", i))
		if api != nil && api.DeletionTimestamp == nil && api.Status.Phase == corev1.PodRunning && backend != nil && backend.Status.Phase == corev1.PodRunning {
			n++
		}
	}
	return n > 1
}
