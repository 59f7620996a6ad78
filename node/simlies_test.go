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
	// shortLie is shorter than the time after which a pod counts as lost if both the list and the read lack it.
	shortLie = 8 * time.Second
	// truthBetween is the time without lies after a lie, so that the controller can see the truth: a pod that is missing in every answer is
	// lost.
	truthBetween = time.Minute
)

// lie makes lists lie, and also reads of pods if all may lie.
//
// A provider that does not report has no source other than its lists, and an old status counts until the next list. So its lists are never
// stale.
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
			// By the contract, a pod that was asked to stop and is in no answer has stopped; only an empty list is recognized as doubtful.
			l = memory.Lie{Empty: true}
		}
		l.Reads = s.Pod > 0 && w.plan.StopTime == 0
		w.deny(l, s)
	}
}

// listed records the pods that a list shows as running although they have ended.
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

// showsJustNow reports whether a pod has just become visible for the first time, or will soon. A lie would hide it for longer than allowed,
// and a controller that has not asked in between cannot know that it existed.
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

// restartBlind restarts the daemon with a provider whose cache is not filled: for a while every answer lacks all pods.
func (w *simWorld) restartBlind(s simStep) {
	if w.plan.Lies != allLie || w.plan.StopTime > 0 {
		return
	}
	w.end()
	w.deny(memory.Lie{Empty: true, Reads: true, Deletes: s.Pod == 2}, s)
	w.start()
}

// deny starts a lie. The lie is short unless it denies several pods at once.
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

// see ends a lie about several pods that has become a lie about a single pod.
func (w *simWorld) see() {
	if w.blind && !w.several() {
		w.backend.Truth()
		w.blind, w.lieEnds = false, time.Now()
	}
}

// several reports whether more than one pod runs on both sides.
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
