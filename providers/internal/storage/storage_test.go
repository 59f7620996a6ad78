// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// TestOffer checks that a capacity without ephemeral-storage gets some for each pod, and that the caller's list
// stays unchanged.
func TestOffer(t *testing.T) {
	of := func(pods, storage string) corev1.ResourceList {
		l := corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}
		if storage != "" {
			l[corev1.ResourceEphemeralStorage] = resource.MustParse(storage)
		}
		return l
	}
	for _, c := range []struct{ pods, said, want string }{
		{"20", "", "600Gi"}, {"20", "7Gi", "7Gi"}, {"20", "0", "0"}, {"0", "", "0"}, {"9000000000000000000", "", "1Ei"},
	} {
		given := of(c.pods, c.said)
		offered := Offer(given, resource.MustParse("30Gi"))
		if got := offered.StorageEphemeral(); got.Cmp(resource.MustParse(c.want)) != 0 {
			t.Errorf("%s pods and %q: got %s, want %s", c.pods, c.said, got, c.want)
		}
		if _, has := given[corev1.ResourceEphemeralStorage]; has != (c.said != "") {
			t.Errorf("the list of the caller became %v", given)
		}
	}
	if got := Offer(nil, resource.MustParse("30Gi")); got != nil {
		t.Errorf("no capacity: got %v, want none", got)
	}
}

// TestCheck checks the sum of the containers' requests. An init container counts only if it requests more than
// that sum.
func TestCheck(t *testing.T) {
	container := func(storage string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse(storage)}}}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container("8Gi"), container("12Gi")}}}
	if err := Check(pod, resource.MustParse("20Gi"), "The service"); err != nil {
		t.Error(err)
	}
	pod.Spec.InitContainers = []corev1.Container{container("21Gi")}
	want := "spec.containers: the pod requests 21Gi of ephemeral-storage: The service gives 20Gi to each: request less, or mount a volume of the service"
	if err := Check(pod, resource.MustParse("20Gi"), "The service"); !errdefs.IsInvalidInput(err) || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
