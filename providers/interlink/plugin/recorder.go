// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// recorder writes the provider's events about pods to the log, because the protocol has no events.
type recorder struct{}

// Event implements record.EventRecorder.
func (recorder) Event(object runtime.Object, _, reason, message string) {
	l := log.L
	if pod, ok := object.(*corev1.Pod); ok {
		l = l.WithField("pod", pod.Namespace+"/"+pod.Name)
	}
	l.WithField("reason", reason).Debug(message)
}

// Eventf implements record.EventRecorder.
func (r recorder) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	r.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf implements record.EventRecorder.
func (r recorder) AnnotatedEventf(object runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	r.Event(object, kind, reason, fmt.Sprintf(format, args...))
}
