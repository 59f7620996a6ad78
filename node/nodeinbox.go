// SPDX-License-Identifier: Apache-2.0

package node

import (
	"time"
)

func (r *nodeReconciler) takeReport() {
	if said, ok := r.reports.take(); ok {
		r.want.Status, r.want.Labels, r.want.Annotations = said.Status, said.Labels, said.Annotations
		r.urgent = true
	}
}

// takePing handles the result of a Ping, and reports whether the node may have to be written. For a while it ignores a new text for the
// same kind of failure: otherwise a text with a time or a number would be written after every Ping.
func (r *nodeReconciler) takePing() bool {
	result, ok := r.pings.take()
	if !ok {
		return false
	}
	same := result.reason == r.ping.reason
	if same && (result.ok() || time.Since(r.pingChanged) < r.statusInterval) {
		return false
	}
	r.ping, r.pingChanged = result, time.Now()
	r.urgent = r.urgent || !same
	return true
}

// takeHolds starts a full comparison when this process may write the node again.
func (r *nodeReconciler) takeHolds() {
	if ours, ok := r.holds.take(); ok {
		if ours && !r.ours {
			r.urgent, r.lastReport = true, time.Time{}
		}
		r.ours = ours
		r.tellRole()
	}
}

func (r *nodeReconciler) takeObserved() {
	seen, ok := r.observed.take()
	switch {
	case !ok || r.server == nil:
	case seen.node != nil:
		if seen.node.UID != r.server.UID {
			r.urgent, r.lastReport = true, time.Time{}
		}
		r.recordObject(seen.node)
	case seen.uid == "" || seen.uid == r.server.UID:
		// Otherwise the node that was deleted has already been replaced.
		r.server, r.lost = nil, true
	}
}

// takeConditions stores the conditions to show.
func (r *nodeReconciler) takeConditions() {
	if shown, ok := r.conditions.mail.take(); ok {
		r.shown, r.urgent = shown, true
	}
}

// takeShutdown records that the node shuts down.
func (r *nodeReconciler) takeShutdown() {
	if _, ok := r.shutdown.take(); ok && !r.down {
		r.down, r.urgent = true, true
	}
}
