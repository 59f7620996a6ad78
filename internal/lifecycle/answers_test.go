// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

func TestFoundInList(t *testing.T) {
	pod := func(namespace, name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	of := func(uid types.UID) *corev1.Pod { p := pod("d", "p"); p.UID = uid; return p }
	other, own := of("a"), of("b")
	if got, _, shared := FoundInList([]*corev1.Pod{own, other}, "d", "p", ""); got != own || shared {
		t.Errorf("got %v where none is wanted, want the first", got)
	}
	for name, tt := range map[string]struct {
		pods         []*corev1.Pod
		want         *corev1.Pod
		wantDoubtful bool
		wantShared   bool
	}{
		"an empty list":     {nil, nil, true, false},
		"others":            {[]*corev1.Pod{pod("d", "q"), pod("e", "p")}, nil, false, false},
		"it, among others":  {[]*corev1.Pod{pod("e", "p"), own}, own, false, false},
		"it, then another":  {[]*corev1.Pod{own, other}, own, false, true},
		"it, and no others": {[]*corev1.Pod{own}, own, false, false},
		"it, after another": {[]*corev1.Pod{other, own}, own, false, true},
		"it, twice":         {[]*corev1.Pod{own, of("b")}, own, false, false},
		"another":           {[]*corev1.Pod{other, of("c")}, other, false, true},
	} {
		if got, doubtful, shared := FoundInList(tt.pods, "d", "p", "b"); got != tt.want || doubtful != tt.wantDoubtful || shared != tt.wantShared {
			t.Errorf("%s: got %v, doubtful %t, shared %t; want %v, %t, %t", name, got, doubtful, shared, tt.want, tt.wantDoubtful, tt.wantShared)
		}
	}
}
