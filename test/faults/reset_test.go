// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// TestFault11ResetConnectionsDelayNothing resets all connections again and again while pods come
// and change.
func TestFault11ResetConnectionsDelayNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	daemon := w.start()
	every, rounds := inForm(time.Second, 5*time.Second), inForm(10, 24)
	const perRound = 4
	created := map[string]time.Time{}
	resets := 0
	for round := range rounds {
		for i := range perRound {
			name := fmt.Sprintf("pod-%d-%d", round, i)
			created[name] = time.Now()
			w.create(w.pod(name))
			w.sleep(every / perRound)
		}
		resets += w.proxy.Reset()
	}
	w.awaitRunning(len(created))
	var starts, statuses []time.Duration
	for _, c := range w.calls.since(time.Time{}, "create") {
		starts = append(starts, c.at.Sub(created[c.name]))
	}
	for name, at := range w.firstRunning() {
		statuses = append(statuses, at.Sub(created[name]))
	}
	w.within("the start of a pod (p99)", percentile(starts, 0.99), 2*time.Second)
	w.within("its status (p99)", percentile(statuses, 0.99), 4*time.Second)
	for name := range created {
		w.createdOnce([]string{name})
	}
	w.alive(daemon)
	faultrow.Record(t, 11, fmt.Sprintf("every connection reset (RST) every %v, %d times, %d connections in all", every, rounds, resets),
		"%d pods: start p99 %v after creation, running in the API p99 %v",
		len(created), percentile(starts, 0.99).Round(time.Millisecond), percentile(statuses, 0.99).Round(time.Millisecond))
}

// firstRunning returns the time when each pod was first seen to run.
func (w *world) firstRunning() map[string]time.Time {
	first := map[string]time.Time{}
	for _, v := range w.pods.history(time.Time{}) {
		if _, known := first[v.Of.Name]; !known && running(v.Of) {
			first[v.Of.Name] = v.At
		}
	}
	return first
}
