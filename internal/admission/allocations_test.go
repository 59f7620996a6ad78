// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestShortage(t *testing.T) {
	list := func(name corev1.ResourceName, q string) corev1.ResourceList {
		return corev1.ResourceList{name: resource.MustParse(q)}
	}
	for _, tt := range []struct {
		name                      string
		wanted, used, allocatable corev1.ResourceList
		want                      string
	}{
		{"fits exactly", list("memory", "1Gi"), list("memory", "1Gi"), list("memory", "2Gi"), ""},
		{"does not fit", list("memory", "1Gi"), list("memory", "1025Mi"), list("memory", "2Gi"), "OutOfmemory"},
		{"wants nothing", list("memory", "0"), list("memory", "3Gi"), list("memory", "2Gi"), ""},
		{"the node does not say", list("ephemeral-storage", "1Gi"), nil, nil, ""},
		{"a device that is taken", list("example.com/gpu", "1"), list("example.com/gpu", "1"), list("example.com/gpu", "1"), "OutOfexample.com/gpu"},
		{"what the node does not have", list("example.com/gpu", "1"), nil, list("example.com/gpu", "0"), "OutOfexample.com/gpu"},
		{"what others count", list("example.com/licence", "1"), nil, nil, ""},
		{"huge pages that the node does not speak of", list("hugepages-2Mi", "1Gi"), nil, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := findShortage(tt.wanted, tt.used, tt.allocatable)
			if got == nil {
				got = &Rejection{}
			}
			if got.Reason != tt.want {
				t.Errorf("got %q, want %q: %s", got.Reason, tt.want, got.Message)
			}
		})
	}
}

// TestReservationStaysUntilItsPodHasEnded: a pod that was just admitted is not in any list yet. Its reservation
// still counts for the next pod.
func TestReservationStaysUntilItsPodHasEnded(t *testing.T) {
	pod := func(uid types.UID) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}}
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("600m")},
		}}}
		return p
	}
	one := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	var a Allocations
	if r := a.Admit(pod("a"), one, func([]types.UID) []types.UID { return nil }); r != nil {
		t.Fatalf("the first pod is rejected: %s", r.Message)
	}
	if r := a.Admit(pod("b"), one, func([]types.UID) []types.UID { return nil }); r == nil {
		t.Error("a second pod is admitted beside the first, for which there is no room")
	}
	if r := a.Admit(pod("b"), one, func(reserved []types.UID) []types.UID { return reserved }); r != nil {
		t.Errorf("the second pod is rejected although the first has ended: %s", r.Message)
	}
}
