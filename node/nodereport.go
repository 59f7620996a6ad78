// SPDX-License-Identifier: Apache-2.0

package node

import "time"

// reportEvery is the maximum age of the last report of an unchanged node with a lease, the same as for a kubelet.
const reportEvery = 5 * time.Minute

// nextReport returns when the node must be reported although nothing changed.
func (r *nodeReconciler) nextReport() time.Time {
	if !r.leased {
		return r.lastReport.Add(r.pingInterval)
	}
	return r.lastReport.Add(max(reportEvery, r.statusInterval))
}
