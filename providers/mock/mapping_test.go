// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPlanOfAPod checks the behavior of pods whose annotations change the defaults.
func TestPlanOfAPod(t *testing.T) {
	defaults := Behavior{StartDelay: seconds(1), ReadyDelay: seconds(2), RunFor: seconds(3), ExitCode: 4, RestartDelay: seconds(5), DeleteDelay: seconds(6), StopExitCode: 7, FailCreate: true}
	for annotation, want := range map[[2]string]func(*Behavior){
		{"", ""}:                       func(*Behavior) {},
		{"example.com/run-for", "1s"}:  func(*Behavior) {},
		{AnnotationStartDelay, "1m"}:   func(b *Behavior) { b.StartDelay = seconds(60) },
		{AnnotationReadyDelay, "0s"}:   func(b *Behavior) { b.ReadyDelay = seconds(0) },
		{AnnotationRunFor, "9s"}:       func(b *Behavior) { b.RunFor = seconds(9) },
		{AnnotationExitCode, "255"}:    func(b *Behavior) { b.ExitCode = 255 },
		{AnnotationRestartDelay, "8s"}: func(b *Behavior) { b.RestartDelay = seconds(8) },
		{AnnotationDeleteDelay, "7s"}:  func(b *Behavior) { b.DeleteDelay = seconds(7) },
		{AnnotationStopExitCode, "0"}:  func(b *Behavior) { b.StopExitCode = 0 },
		{AnnotationFailCreate, "false"}: func(b *Behavior) {
			b.FailCreate = false
		},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotation[0]: annotation[1]}}}
		expected := defaults
		want(&expected)
		got, err := defaults.forPod(pod)
		if diff := cmp.Diff(expected, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", annotation, err, diff)
		}
	}
}
