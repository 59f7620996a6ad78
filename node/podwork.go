// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// PodWork describes the state of the work on one pod for people. Its texts contain no secrets of the pod.
type PodWork struct {
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	UID       types.UID       `json:"uid"`
	Phase     corev1.PodPhase `json:"phase"`
	// WaitsFor is the reason why the pod waits, or "". Since is the time when the wait began.
	WaitsFor string    `json:"waitsFor,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	// Error is the last error that the pod shows, or "".
	Error string `json:"error,omitempty"`
	// Tries is the number of failed provider calls since the last success. NextTry is the time of the next try.
	Tries   int       `json:"tries,omitempty"`
	NextTry time.Time `json:"nextTry,omitzero"`
}

// Work returns the state of the work on each pod of the node.
func (c *PodController) Work(ctx context.Context) []PodWork {
	work := []PodWork{}
	for _, api := range c.all(ctx) {
		key := keyOf(api)
		st := c.states.get(key)
		if st.sent.UID != api.UID {
			st = podState{} // the sync lane does not track this pod yet
		}
		w := PodWork{Namespace: api.Namespace, Name: api.Name, UID: api.UID, Phase: api.Status.Phase}
		if w.Phase == "" {
			w.Phase = corev1.PodPending
		}
		if st.syncErr != nil {
			w.Error = st.syncErr.Message
		}
		w.Tries, w.NextTry = c.syncLane.Retry(key)
		w.WaitsFor, w.Since = waitsFor(api, &st)
		work = append(work, w)
	}
	return work
}

// Queues returns how many pods wait for a worker in each queue.
func (c *PodController) Queues() map[string]int {
	lengths := map[string]int{}
	lengths["sync"], _ = c.syncLane.Backlog()
	lengths["status"], _ = c.statusLane.Backlog()
	lengths["poll"], _ = c.pollLane.Backlog()
	return lengths
}

// waitsFor returns the reason why a pod waits, or "", and the time when the wait began.
func waitsFor(api *corev1.Pod, st *podState) (string, time.Time) {
	since := laterOf(api.CreationTimestamp.Time, st.created)
	switch {
	case api.DeletionTimestamp != nil:
		return waitsForEnd(api, st)
	case lifecycle.Terminal(&api.Status):
		return "", time.Time{}
	case st.failure != nil:
		return "the backend to stop the failed pod", st.askedAt
	case !st.sent.MissingSince.IsZero():
		return "the backend to show the pod again", st.sent.MissingSince
	case !st.sent.Accepted && !st.othersSince().IsZero():
		return "another pod under the name to stop", st.othersSince()
	case st.unready:
		return "a ConfigMap or Secret", since
	case st.syncErr != nil && st.syncErr.Reason == lifecycle.ReasonUnsupported:
		return "a change of the pod", since
	case st.sent.Recreate:
		return "the backend to create the lost pod again", laterOf(since, st.sent.AttemptedAt)
	case !st.sent.Accepted && !lifecycle.HasRun(api):
		return "the backend to create the pod", since
	case st.sent.Updating:
		return "the backend to accept the change", laterOf(since, st.sent.AcceptedAt)
	}
	return waitsForContainers(api, laterOf(since, st.sent.AcceptedAt))
}

func waitsForEnd(api *corev1.Pod, st *podState) (string, time.Time) {
	asked := api.DeletionTimestamp.Add(-time.Duration(secondsOrZero(api.DeletionGracePeriodSeconds)) * time.Second)
	switch {
	case !st.removedAt.IsZero():
		return "the API server to remove the pod", st.removedAt
	case st.stopped && len(api.Finalizers) > 0:
		return "finalizers: " + fmt.Sprint(api.Finalizers), asked
	case st.stopped:
		return "the API server to take the last status", asked
	case st.sent.StopAcked:
		return "the backend to confirm the stop", asked
	}
	return "the backend to accept the stop", asked
}

func secondsOrZero(s *int64) int64 {
	if s == nil {
		return 0
	}
	return *s
}

// waitsForContainers returns the reason why the containers of an accepted pod wait.
func waitsForContainers(api *corev1.Pod, since time.Time) (string, time.Time) {
	for _, statuses := range [][]corev1.ContainerStatus{api.Status.InitContainerStatuses, api.Status.ContainerStatuses} {
		for _, c := range statuses {
			if w := c.State.Waiting; w != nil && w.Reason != "" {
				text := fmt.Sprintf("container %s: %s", c.Name, w.Reason)
				if w.Message != "" {
					text += ": " + w.Message
				}
				return text, since
			}
		}
	}
	if api.Status.Phase != corev1.PodRunning {
		return "the backend to start the pod", since
	}
	for _, c := range api.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
			return "its readiness", c.LastTransitionTime.Time
		}
	}
	return "", time.Time{}
}
