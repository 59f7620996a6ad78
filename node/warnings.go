// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

// warnings are the events of one look at what a pod names. Each try looks anew, so they are
// kept until it is known whether they are told.
type warnings struct {
	record.EventRecorder // nil: what is not used for them
	found                []warning
}

type warning struct{ kind, reason, message string }

// Event keeps an event.
func (w *warnings) Event(_ runtime.Object, kind, reason, message string) {
	w.found = append(w.found, warning{kind, reason, message})
}

// warn records what a look at what the pod names has found, unless it was told not long ago.
func (w *podWorker) warn(pod *corev1.Pod, found []warning) {
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
