// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLabelsAreFoundByName: labels are found by the kubelet's names and by the names that known providers use,
// in any order.
func TestLabelsAreFoundByName(t *testing.T) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(`
x{container="a",namespace="ns",pod="p"} 1
x{NodeName="p",PodName="p",containerName="b"} 1
x{pod_name="p",container_name="c"} 1
x{container="d",namespace="other",pod="p"} 1
x{container="p",namespace="ns",pod="q"} 1
`))
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	var got []string
	for _, m := range ofPod(families["x"], pod) {
		got = append(got, labelValue(m, "container"))
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, got); diff != "" {
		t.Errorf("containers of the pod (-want +got):\n%s", diff)
	}
	if got := ofPod(nil, pod); got != nil {
		t.Errorf("a family that is not there has the metrics %v", got)
	}
}

func TestContainersAreComparedInAnyOrder(t *testing.T) {
	pod := (&EndToEndTestSuite{}).newPod("x", "one", "two")
	if err := wantContainers(pod, []string{"two", "one"}); err != nil {
		t.Error(err)
	}
	for _, names := range [][]string{nil, {"one"}, {"one", "one"}, {"one", "two", "three"}} {
		if wantContainers(pod, names) == nil {
			t.Errorf("%q counts as the containers one and two", names)
		}
	}
}

func TestWaitingPodsDoNotRun(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	other := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "q"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	if err := checkWaits([]corev1.Pod{other}, pod); err != nil {
		t.Error(err)
	}
	for phase, waiting := range map[corev1.PodPhase]bool{corev1.PodPending: true, corev1.PodRunning: false, corev1.PodFailed: false, "": false} {
		listed := *pod.DeepCopy()
		listed.Status.Phase = phase
		if err := checkWaits([]corev1.Pod{other, listed}, pod); (err == nil) != waiting {
			t.Errorf("a pod that is listed as %q: got %v, want that it waits: %t", phase, err, waiting)
		}
	}
}
