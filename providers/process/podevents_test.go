// SPDX-License-Identifier: Apache-2.0

package process

import (
	"time"

	eventrecord "k8s.io/client-go/tools/record"
)

// RecordPods sets the recorder of pod events, and the interval of checks for them. It must be called before Run.
func (r *Runtime) RecordPods(to eventrecord.EventRecorder, every time.Duration) {
	r.recorder, r.userNetwork().every = to, every
}
