// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// hungCall is the time after which a pod's status shows that a provider call has not returned. The call may never return, and users must
// see why the pod waits.
const hungCall = 30 * time.Second

// callAboutPod makes a call about a pod that changes the backend. While the call hangs, an event and the status of the pod show it, like a
// failure.
func (w *podWorker) callAboutPod(ctx context.Context, key string, api *corev1.Pod, method string, call func(context.Context) error) error {
	var returned atomic.Bool
	begin := time.Now()
	defer time.AfterFunc(hungCall, func() {
		message := fmt.Sprintf("%s was called at %s and has not returned", method, begin.UTC().Format(time.RFC3339))
		hangs := false
		w.states.errors(key, api.UID, func(st *errorMemory) {
			// This runs under the lock under which the result of the call is recorded, after returned is set.
			if returned.Load() {
				return
			}
			update, text := method == "UpdatePod", message
			if update {
				text = method // as for a failed UpdatePod
			}
			if st.notices, hangs = st.notices.next(eventCallHangs, text, time.Now()); hangs && !update {
				st.syncErr = &lifecycle.SyncError{Reason: lifecycle.ReasonProviderFailed, Message: message}
			}
		})
		if hangs {
			w.recorder.Event(api, corev1.EventTypeWarning, eventCallHangs, message)
			w.statusLane.Add(key)
		}
	}).Stop()
	defer returned.Store(true)
	return w.backend.callToChange(ctx, key, method, call)
}
