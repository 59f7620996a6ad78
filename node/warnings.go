// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

// warnings has the events of one read of a pod's inputs. Each try reads again, so the events are kept until it is clear whether to send
// them.
type warnings struct {
	record.EventRecorder // nil: only Event is used
	found                []warning
}

type warning struct{ kind, reason, message string }

// Event stores an event.
func (w *warnings) Event(_ runtime.Object, kind, reason, message string) {
	w.found = append(w.found, warning{kind, reason, message})
}

// sendWarnings sends the warnings about a pod's inputs, unless they were sent not long ago.
func (w *podWorker) sendWarnings(pod *corev1.Pod, found []warning) {
	if len(found) == 0 {
		return
	}
	news := false
	w.states.errors(keyOf(pod), pod.UID, func(st *errorMemory) {
		st.notices, news = st.notices.next(found[0].reason, fmt.Sprint(found), time.Now())
	})
	for _, f := range found {
		if news {
			w.recorder.Event(pod, f.kind, f.reason, f.message)
		}
	}
}
