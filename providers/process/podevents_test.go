// SPDX-License-Identifier: Apache-2.0

package process

import (
	"time"

	eventrecord "k8s.io/client-go/tools/record"
)

// RecordPods gives events about pods to a recorder, and looks that often for them. It is called before Run.
func (r *Runtime) RecordPods(to eventrecord.EventRecorder, every time.Duration) {
	r.recorder, r.userNetwork().every = to, every
}
