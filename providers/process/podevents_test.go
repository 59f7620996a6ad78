// SPDX-License-Identifier: Apache-2.0

package process

import (
	"time"

	eventrecord "k8s.io/client-go/tools/record"
)

// RecordPods gives events about pods to a recorder, and looks for such events at the given interval. Call it
// before Run.
func (r *Runtime) RecordPods(to eventrecord.EventRecorder, every time.Duration) {
	r.recorder, r.userNetwork().every = to, every
}
