// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestEarlyReportsAreFewAndKeepTheEnd holds that for each pod the first end and the newest report are handled, in this order, and that
// later reports are not buffered.
func TestEarlyReportsAreFewAndKeepTheEnd(t *testing.T) {
	const running, failed, succeeded = corev1.PodRunning, corev1.PodFailed, corev1.PodSucceeded
	for name, tt := range map[string]struct{ told, want []corev1.PodPhase }{
		"it runs":                  {[]corev1.PodPhase{corev1.PodPending, running, running}, []corev1.PodPhase{running}},
		"it has ended":             {[]corev1.PodPhase{running, failed}, []corev1.PodPhase{failed}},
		"it ended, and runs again": {[]corev1.PodPhase{failed, running, running}, []corev1.PodPhase{failed, running}},
		"its end is told again":    {[]corev1.PodPhase{failed, running, failed, running, succeeded}, []corev1.PodPhase{failed, succeeded}},
	} {
		e := &earlyReports{}
		tell := func(uid types.UID, phase corev1.PodPhase) bool {
			pod := bound("p", uid)
			pod.Status.Phase = phase
			return e.holdReport(pod, newReport(pod))
		}
		tell("older", running)
		for _, phase := range tt.told {
			if !tell("a", phase) {
				t.Fatalf("%s: a report is not held", name)
			}
		}
		var got []corev1.PodPhase
		var of []types.UID
		e.takeHeld(func(pod *corev1.Pod, r *report) {
			of = append(of, pod.UID)
			if got = append(got, r.status.Phase); keyOf(pod) != "d/p" || pod.UID != r.uid {
				t.Errorf("%s: %s (UID %s) with the report of UID %s", name, keyOf(pod), pod.UID, r.uid)
			}
		})
		if of[0] != "older" || !slices.Equal(got[1:], tt.want) {
			t.Errorf("%s: got %v of %v, want %v after that of the older one", name, got, of, tt.want)
		}
		if tell("a", running) {
			t.Errorf("%s: a report is held although those before were taken", name)
		}
	}
}
