// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// machine returns a Ready node with the given number of CPUs.
func machine(name, cpu string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}},
		Status: corev1.NodeStatus{
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("10")},
		},
	}
}

// asks returns a pod that requests the given number of CPUs.
func asks(uid types.UID, cpu string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, Name: string(uid)}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	return pod
}

func TestFit(t *testing.T) {
	cordoned, down, tainted := machine("cordoned", "9"), machine("down", "9"), machine("tainted", "9")
	cordoned.Spec.Unschedulable = true
	down.Status.Conditions = nil
	tainted.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	takes := asks("takes", "1500m")
	takes.Spec.NodeName = "a"
	small, err := onlyRequests(takes)
	if err != nil {
		t.Fatal(err)
	}
	all := roomsOf([]*corev1.Node{machine("a", "2"), machine("b", "2"), cordoned, down, tainted}, []*corev1.Pod{small.(*corev1.Pod)})
	for name, tt := range map[string]struct {
		cpu   string
		place remotecluster.Placement
		want  string // the node, or a part of the reason why there is none
	}{
		"the node with most left":        {cpu: "500m", want: "b"},
		"the sum is not enough":          {cpu: "2500m", want: "2 of 5: too little cpu: 2500m wanted, at most 2 free"},
		"by the selector":                {cpu: "500m", place: remotecluster.Placement{NodeSelector: map[string]string{"name": "a"}}, want: "a"},
		"the selected one is full":       {cpu: "1", place: remotecluster.Placement{NodeSelector: map[string]string{"name": "a"}}, want: "3 of 5: the pod does not select it"},
		"others are named with a reason": {cpu: "3", want: "the pod does not tolerate its taint gpu"},
		"not the one that is not Ready":  {cpu: "3", want: "1 of 5: it is not Ready"},
		"a taint that is tolerated":      {cpu: "3", place: remotecluster.Placement{Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}}, want: "tainted"},
	} {
		best, why := all.fitNode(podNeeds(asks("pod", tt.cpu)), tt.place)
		if got := why; best != nil {
			got = best.node.Name
			if got != tt.want {
				t.Errorf("%s: got %s, want %s", name, got, tt.want)
			}
		} else if !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// TestFullTargetIsLookedAtOnce has a target whose nodes all lack room. Each of its many nodes is checked once.
func TestFullTargetIsLookedAtOnce(t *testing.T) {
	var nodes []*corev1.Node
	for i := range 1000 {
		nodes = append(nodes, machine(fmt.Sprintf("n%d", i), fmt.Sprintf("%dm", i+1))) // each node has more room than the earlier ones
	}
	all, what := roomsOf(nodes, nil), podNeeds(asks("pod", "3"))
	work := testing.AllocsPerRun(1, func() { all.fitNode(what, remotecluster.Placement{}) })
	one := testing.AllocsPerRun(1, func() { all[:1].fitNode(what, remotecluster.Placement{}) })
	if work > 1500*one {
		t.Errorf("1000 nodes take %.0f allocations, one takes %.0f", work, one)
	}
}

// TestBoundPodsCount has a pod that is bound here. Its pod in the target is on a node, or not yet.
func TestBoundPodsCount(t *testing.T) {
	for _, there := range []bool{false, true} {
		c := &candidate{target: &target{Target: Target{Node: "t"}}, node: &room{machine("t", "9"), machine("t", "9").Status.Allocatable}}
		c.rooms = roomsOf([]*corev1.Node{machine("a", "2")}, nil)
		c.takePod(asks("one", "2"), map[types.UID]bool{"one": there})
		if _, why := c.fitPod(asks("two", "1")); (why != "") == there {
			t.Errorf("there=%t: a second pod gets %q", there, why)
		}
		if free := c.node.free[corev1.ResourceCPU]; free.Value() != 7 {
			t.Errorf("the node here has %s free, want 7", free.String())
		}
	}
}

func TestOrder(t *testing.T) {
	high, old, late := asks("high", "1"), asks("old", "1"), asks("late", "1")
	high.Spec.Priority = new(int32)
	*high.Spec.Priority = 10
	late.CreationTimestamp, high.CreationTimestamp = metav1.Unix(20, 0), metav1.Unix(30, 0)
	pods := []*corev1.Pod{late, old, high}
	inOrder(pods)
	if pods[0] != high || pods[1] != old {
		t.Errorf("the order is %s, %s, %s", pods[0].Name, pods[1].Name, pods[2].Name)
	}
	for want, change := range map[bool]func(*corev1.Pod){
		true:  func(*corev1.Pod) {},
		false: func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "hold"}} },
	} {
		pod := asks("pod", "1")
		pod.Spec.SchedulerName = SchedulerName
		if change(pod); isWaiting(pod) != want {
			t.Errorf("waits is %t, want %t", !want, want)
		}
	}
}
