// SPDX-License-Identifier: Apache-2.0

package sizing

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

var table = []Row{
	{250, []Steps{One(512 * Mi), {1 * Gi, 2 * Gi, 1 * Gi}}},
	{1000, []Steps{{2 * Gi, 8 * Gi, 2 * Gi}}},
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		asked, want Size
		none        bool
	}{
		{asked: Size{}, want: Size{250, 512 * Mi}},
		{asked: Size{250, 512 * Mi}, want: Size{250, 512 * Mi}},
		{asked: Size{250, 512*Mi + 1}, want: Size{250, Gi}},
		{asked: Size{1, Gi + 1}, want: Size{250, 2 * Gi}},
		{asked: Size{1, 2*Gi + 1}, want: Size{1000, 4 * Gi}},
		{asked: Size{251, 1}, want: Size{1000, 2 * Gi}},
		{asked: Size{1000, 8 * Gi}, want: Size{1000, 8 * Gi}},
		{asked: Size{1001, 1}, none: true},
		{asked: Size{1, 8*Gi + 1}, none: true},
	} {
		if got, ok := Fit(table, c.asked); ok == c.none || got != c.want {
			t.Errorf("%v: got %v, %t, want %v", c.asked, got, ok, c.want)
		}
	}
}

// TestTogether checks that an init container needs its room beside the sidecars before it only, and that containers
// and sidecars run together.
func TestTogether(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "50"}, {Name: "7", RestartPolicy: &always}, {Name: "60"}, {Name: "8", RestartPolicy: &always}},
		Containers:     []corev1.Container{{Name: "1"}, {Name: "2"}},
	}}
	of := func(c *corev1.Container) int64 { n, _ := strconv.ParseInt(c.Name, 10, 64); return n }
	if got := Together(pod, of); got != 67 {
		t.Errorf("got %d, want 67", got)
	}
	pod.Spec.Containers[0].Name = "100"
	if got := OfPod(pod, func(c *corev1.Container) Size { return Size{MilliCPU: of(c), Memory: 1} }); got != (Size{117, 4}) {
		t.Errorf("got %+v, want 117 and 4", got)
	}
}

// TestAsked checks that a limit goes before a request, and a request before a default, for each resource.
func TestAsked(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		l := corev1.ResourceList{}
		for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
			if text != "" {
				l[name] = resource.MustParse(text)
			}
		}
		return l
	}
	defaults := list("1", "1Gi")
	for _, c := range []struct{ requests, limits, want corev1.ResourceList }{
		{nil, nil, list("1", "1Gi")},
		{list("2", ""), nil, list("2", "1Gi")},
		{list("2", "2Gi"), list("3", ""), list("3", "2Gi")},
	} {
		got := Asked(defaults, corev1.ResourceRequirements{Requests: c.requests, Limits: c.limits})
		if Of(got) != Of(c.want) || len(got) != 2 {
			t.Errorf("requests %v, limits %v: got %v, want %v", c.requests, c.limits, got, c.want)
		}
	}
	if defaults.Cpu().Value() != 1 {
		t.Error("the defaults were changed")
	}
}
