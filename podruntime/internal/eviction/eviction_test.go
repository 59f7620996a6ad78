// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/google/go-cmp/cmp"
)

func parsed(t *testing.T, setting map[string]string) []Threshold {
	t.Helper()
	list, err := Parse(setting)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestParse(t *testing.T) {
	list := parsed(t, map[string]string{"pid.available": "5%", "nodefs.available": "10%", "memory.available": "100Mi", "imagefs.available": "0%", "imagefs.inodesFree": "0"})
	var got []Signal
	for _, threshold := range list {
		got = append(got, threshold.Signal)
	}
	if diff := cmp.Diff([]Signal{MemoryAvailable, NodeFsAvailable, PIDAvailable}, got); diff != "" {
		t.Errorf("signals, memory first (-want +got):\n%s", diff)
	}
	for name, value := range map[string]string{"memory.free": "1Gi", "memory.available": "-1", "nodefs.available": "100%", "nodefs.inodesFree": "-5%", "pid.available": "many", "imagefs.available": "NaN%"} {
		if list, err := Parse(map[string]string{name: value}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %s: got %v, %v; want an error about it", name, value, list, err)
		}
	}
}

// TestDefault: the default thresholds are a kubelet's, with an upper bound for large machines. No threshold is
// met at the start.
func TestDefault(t *testing.T) {
	const gi = 1 << 30
	for name, c := range map[string]struct{ available, capacity, nodeFs, imageFs int64 }{
		"a small disk":       {19 * gi, 20 * gi, 2 * gi, 3 * gi},
		"a large disk":       {900 * gi, 1000 * gi, 5 * gi, 5 * gi},
		"a disk almost full": {gi, 1000 * gi, gi / 2, gi / 2},
		"a full disk":        {0, 1000 * gi, 0, 0},
	} {
		seen := Observation{uint64(c.available), uint64(c.capacity)}
		now := Observations{MemoryAvailable: {8 * gi, 16 * gi}, NodeFsAvailable: seen, ImageFsAvailable: seen, NodeFsInodesFree: {900, 1000}, ImageFsInodesFree: {20 << 20, 100 << 20}}
		thresholds := parsed(t, Default(now))
		got := map[Signal]int64{}
		for _, threshold := range thresholds {
			got[threshold.Signal] = threshold.Least(int64(now[threshold.Signal].Capacity))
		}
		want := map[Signal]int64{MemoryAvailable: 100 << 20, NodeFsAvailable: c.nodeFs, ImageFsAvailable: c.imageFs, NodeFsInodesFree: 50, ImageFsInodesFree: 250_000}
		if c.nodeFs == 0 {
			delete(want, NodeFsAvailable)
			delete(want, ImageFsAvailable)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if met := now.Met(thresholds); len(met) > 0 {
			t.Errorf("%s: %v is met at the start", name, met)
		}
	}
	if got := Default(Observations{MemoryAvailable: {60 << 20, 16 * gi}}); len(got) != 1 || got["memory.available"] != "31457280" {
		t.Errorf("little memory, and a disk that was not measured: got %v", got)
	}
}

func TestMet(t *testing.T) {
	thresholds := parsed(t, map[string]string{"memory.available": "100Mi", "nodefs.available": "10%", "pid.available": "10"})
	for name, c := range map[string]struct {
		seen Observations
		want []string
	}{
		"nothing measured": {Observations{}, nil},
		"no capacity":      {Observations{NodeFsAvailable: {}}, nil},
		"enough":           {Observations{MemoryAvailable: {100 << 20, 1 << 30}, NodeFsAvailable: {10, 100}, PIDAvailable: {10, 100}}, nil},
		"too little": {
			Observations{MemoryAvailable: {100<<20 - 1<<10, 1 << 30}, NodeFsAvailable: {9 << 20, 100 << 20}, PIDAvailable: {9, 100}},
			[]string{
				"The node was low on resource: memory. Threshold quantity: 100Mi, available: 102399Ki. ",
				"The node was low on resource: ephemeral-storage. Threshold quantity: 10Mi, available: 9Mi. ",
				"The node was low on resource: pids. Threshold quantity: 10, available: 9. ",
			},
		},
	} {
		var got []string
		for _, m := range c.seen.Met(thresholds) {
			got = append(got, m.Message())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// using returns a pod with the given usage and the given request of every resource.
func using(name string, uses, requests int64, priority int32) Pod {
	request := corev1.ResourceList{}
	for _, r := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		request[r] = *resource.NewQuantity(requests, resource.BinarySI)
	}
	used := uint64(max(uses, 0)) //nolint:gosec // it is not negative
	p := Pod{
		Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
			Priority: &priority, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: request}}},
		}},
		Stats: &statsv1alpha1.PodStats{
			Memory:           &statsv1alpha1.MemoryStats{WorkingSetBytes: &used},
			EphemeralStorage: &statsv1alpha1.FsStats{UsedBytes: &used, InodesUsed: &used},
			ProcessStats:     &statsv1alpha1.ProcessStats{ProcessCount: &used},
		},
	}
	if uses < 0 {
		p.Stats = nil
	}
	return p
}

func TestRank(t *testing.T) {
	pods := []Pod{
		using("critical", 1000, 0, Critical), using("within", 90, 100, -5), using("within-much", 900, 1000, -5), using("beyond", 60, 50, 0),
		using("beyond-more", 70, 50, 0), using("beyond-important", 500, 0, 7), using("unknown", -1, 0, 0),
	}
	for r, want := range map[Resource]string{
		Memory: "unknown beyond-more beyond beyond-important within within-much",
		Disk:   "unknown beyond-more beyond beyond-important within within-much",
		// Pods cannot request inodes.
		Inodes:  "within-much within unknown beyond-more beyond beyond-important",
		Process: "within-much within unknown beyond-more beyond beyond-important",
	} {
		var names []string
		for _, p := range Rank(pods, r) {
			names = append(names, p.Pod.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: got %s, want %s", r, got, want)
		}
	}
}

func TestRequestsOfSidecarsCount(t *testing.T) {
	p := using("web", 150, 100, 0)
	init := corev1.Container{Resources: p.Pod.Spec.Containers[0].Resources}
	p.Pod.Spec.InitContainers = []corev1.Container{init, init}
	p.Pod.Spec.InitContainers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	if got := p.requestedAmount(Memory); got != 200 {
		t.Errorf("got %d, want the 100 of the container and of the sidecar each", got)
	}
}

func TestConditionStaysAfterItsLastCause(t *testing.T) {
	var p Pressure
	now := time.Now()
	met := []Met{{Threshold: Threshold{Signal: NodeFsAvailable}}, {Threshold: Threshold{Signal: MemoryAvailable}}}
	both := []corev1.NodeConditionType{corev1.NodeDiskPressure, corev1.NodeMemoryPressure}
	for _, step := range []struct {
		after   time.Duration
		met     []Met
		changed bool
		want    []corev1.NodeConditionType
	}{
		{0, nil, false, nil},
		{0, met, true, both},
		{0, met, false, both},
		{Transition - time.Second, nil, false, both},
		{0, met[:1], false, both},
		{time.Second, nil, true, both[:1]},
		{Transition - 2*time.Second, nil, false, both[:1]},
		{time.Second, nil, true, nil},
	} {
		now = now.Add(step.after)
		if changed := p.Update(step.met, now); changed != step.changed || !cmp.Equal(p.Conditions(), step.want) {
			t.Errorf("got %v, changed %v; want %v, %v", p.Conditions(), changed, step.want, step.changed)
		}
	}
}

func TestRefuse(t *testing.T) {
	plain := using("plain", 0, 0, 0).Pod
	burstable := using("burstable", 0, 100, 0).Pod
	limited := using("limited", 0, 0, 0).Pod
	limited.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	critical := using("critical", 0, 0, Critical).Pod
	tolerant := using("tolerant", 0, 0, 0).Pod
	tolerant.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	for _, c := range []struct {
		conditions []corev1.NodeConditionType
		refused    string
		text       string
	}{
		{nil, "", ""},
		{[]corev1.NodeConditionType{corev1.NodeMemoryPressure}, "plain", "The node had condition: [MemoryPressure]. "},
		{[]corev1.NodeConditionType{corev1.NodeDiskPressure}, "plain burstable limited tolerant", "The node had condition: [DiskPressure]. "},
		{[]corev1.NodeConditionType{corev1.NodeDiskPressure, corev1.NodeMemoryPressure}, "plain burstable limited tolerant", "The node had condition: [DiskPressure MemoryPressure]. "},
	} {
		var refused []string
		for _, pod := range []*corev1.Pod{plain, burstable, limited, critical, tolerant} {
			if text := Refuse(pod, c.conditions); text != "" {
				refused = append(refused, pod.Name)
				if text != c.text {
					t.Errorf("%v: got %q, want %q", c.conditions, text, c.text)
				}
			}
		}
		if got := strings.Join(refused, " "); got != c.refused {
			t.Errorf("%v: got %q refused, want %q", c.conditions, got, c.refused)
		}
	}
}
