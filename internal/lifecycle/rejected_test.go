// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEndsWhenRejected(t *testing.T) {
	owned := func(apiVersion, kind string, controls bool, policy corev1.RestartPolicy) *corev1.Pod {
		pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: policy}}
		if kind != "" {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Controller: &controls}}
		}
		return pod
	}
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"of nobody, always restarted":       {owned("", "", false, corev1.RestartPolicyAlways), false},
		"of nobody, restarted on failure":   {owned("", "", false, corev1.RestartPolicyOnFailure), false},
		"of nobody, never restarted":        {owned("", "", false, corev1.RestartPolicyNever), true},
		"of a ReplicaSet":                   {owned("apps/v1", "ReplicaSet", true, corev1.RestartPolicyAlways), false},
		"of a Job, restarted on failure":    {owned("batch/v1", "Job", true, corev1.RestartPolicyOnFailure), true},
		"owned but not controlled by a Job": {owned("batch/v1", "Job", false, corev1.RestartPolicyOnFailure), false},
		"of another API's Job":              {owned("batch.example.com/v1", "Job", true, corev1.RestartPolicyOnFailure), false},
		"of another kind of batch":          {owned("batch/v1", "CronJob", true, corev1.RestartPolicyOnFailure), false},
		"of a Job of a coming version":      {owned("batch/v2", "Job", true, corev1.RestartPolicyOnFailure), true},
	} {
		if got := EndsWhenRejected(tt.pod); got != tt.want {
			t.Errorf("%s: got %t, want %t", name, got, tt.want)
		}
	}
}
