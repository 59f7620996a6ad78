// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
)

// laneError is a failure of the sync lane or of the status lane. syncFailed or writeFailed handles it.
type laneError struct {
	pod   *corev1.Pod // nil: gone from the API server
	event string      // "": the failing code has already recorded an event
	err   error
}

func (e *laneError) Error() string { return e.err.Error() }
func (e *laneError) Unwrap() error { return e.err }

func newLaneError(pod *corev1.Pod, event string, err error) error {
	return &laneError{pod: pod, event: event, err: err}
}

// uidOf returns the UID of the pod that err is about, or "".
func uidOf(err error) types.UID {
	var failed *laneError
	if errors.As(err, &failed) && failed.pod != nil {
		return failed.pod.UID
	}
	return ""
}

// ofUpdate reports whether an update of a pod that the backend has failed.
func (e *laneError) ofUpdate() bool { return e.event == eventUpdateFailed }

// isRejection reports whether the provider rejected the pod as invalid. A stop is never rejected, because it must happen.
func (e *laneError) isRejection() bool {
	return e.event == eventRejected || e.ofUpdate() && errdefs.IsInvalidInput(e.err)
}

// isRejected reports whether err is a rejected laneError.
func isRejected(err error) bool {
	var failed *laneError
	return errors.As(err, &failed) && failed.isRejection()
}

// nextTry returns the text about the next try for the pod. The time of the next try is only in the log: in an object it would cause a write
// per try.
func (e *laneError) nextTry(again bool) string {
	switch {
	case !again:
		return "; given up until the pod changes"
	case e.isRejection():
		return "; tried again when the pod changes, else after some minutes"
	}
	return "; it is tried again"
}

// shortText returns the text of an error, redacted and shortened for API objects.
func shortText(err error) string { return redact.Text(err.Error()) }
