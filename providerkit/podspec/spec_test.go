// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestGrace(t *testing.T) {
	for _, tt := range []struct {
		spec, deletion *int64
		want           time.Duration
	}{
		{nil, nil, 30 * time.Second},
		{ptr.To[int64](7), nil, 7 * time.Second},
		{ptr.To[int64](7), ptr.To[int64](0), 0},
		{nil, ptr.To[int64](5), 5 * time.Second},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: tt.spec}}
		pod.DeletionGracePeriodSeconds = tt.deletion
		if got := Grace(pod); got != tt.want {
			t.Errorf("spec %v, deletion %v: got %v, want %v", ptr.Deref(tt.spec, -1), ptr.Deref(tt.deletion, -1), got, tt.want)
		}
	}
}
