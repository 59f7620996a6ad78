// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var q = resource.MustParse

func remotePod(s corev1.PodStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "r", Name: "web-0-x", UID: "remote", Labels: map[string]string{LabelUID: "home"},
			Annotations: map[string]string{AnnotationNamespace: "default", AnnotationName: "web-0"}},
		Status: s,
	}
}

func TestStatus(t *testing.T) {
	ended := []corev1.ContainerStatus{{Name: "main", RestartCount: 1, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 0}}}}
	for name, tt := range map[string]struct {
		remote corev1.PodStatus
		by     remover
		want   corev1.PodStatus
	}{
		"nothing is said yet": {want: corev1.PodStatus{Phase: corev1.PodPending}},
		"of the remote node nothing is told": {
			remote: corev1.PodStatus{Phase: corev1.PodRunning, HostIP: "10.1.0.1", HostIPs: []corev1.HostIP{{IP: "10.1.0.1"}}, PodIP: "10.2.0.1",
				PodIPs: []corev1.PodIP{{IP: "10.2.0.1"}}, NominatedNodeName: "n", ObservedGeneration: 4,
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, ObservedGeneration: 4}, {Type: "example.com/other"}}},
			want: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.2.0.1", PodIPs: []corev1.PodIP{{IP: "10.2.0.1"}},
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		},
		"no node takes it": {
			remote: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available"}}},
			want: corev1.PodStatus{Phase: corev1.PodPending, Reason: "Unschedulable", Message: "in the remote cluster: 0/3 nodes are available"},
		},
		"it succeeded": {
			remote: corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: ended},
			want:   corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: ended},
		},
		"somebody there removed it": {
			remote: corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: ended}, by: bySomebody,
			want: corev1.PodStatus{Phase: corev1.PodRunning, Reason: reasonRemoved, Message: "somebody removes the pod in the remote cluster", ContainerStatuses: ended},
		},
		"it was removed before the node started": {
			remote: corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: ended}, by: byNobodyKnows,
			want: corev1.PodStatus{Phase: corev1.PodFailed, Reason: reasonRemoved, Message: "the pod was removed while the node was away", ContainerStatuses: ended},
		},
		"it was evicted there": {
			remote: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory"},
			want:   corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory"},
		},
	} {
		if diff := cmp.Diff(tt.want, Status(remotePod(tt.remote), tt.by)); diff != "" {
			t.Errorf("%s (-want +got): %s", name, diff)
		}
	}
}

func TestRestartsSurviveAnotherPod(t *testing.T) {
	home := corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		{Name: "main", RestartCount: 4, ContainerID: "x"}, {Name: "never", RestartCount: 0}, {Name: "once", ContainerID: "y"}}}
	target := testTarget()
	target.Restarts = restartsOf(&home)
	tr, err := Translate(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}}, target)
	if err != nil {
		t.Fatal(err)
	}
	remote := tr.Pod
	remote.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: 2}, {Name: "never"}, {Name: "once"}}
	got := map[string]int32{}
	for _, c := range Status(remote, byHome).ContainerStatuses {
		got[c.Name] = c.RestartCount
	}
	if diff := cmp.Diff(map[string]int32{"main": 7, "never": 0, "once": 1}, got); diff != "" {
		t.Errorf("restarts (-want +got): %s", diff)
	}
	if remote.Status.ContainerStatuses[0].RestartCount != 2 {
		t.Error("the remote pod was changed")
	}
}

func TestShownHasHomesIdentity(t *testing.T) {
	home := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", UID: "home", Generation: 2, Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{NodeName: "vk-0"}}
	got := homeView(remotePod(corev1.PodStatus{Phase: corev1.PodRunning}), home, "vk-0", byHome)
	if got.UID != "home" || got.Namespace != "default" || got.Name != "web-0" || got.Labels["app"] != "web" || got.Spec.NodeName != "vk-0" || got.Generation != 0 {
		t.Errorf("the pod is shown as %v", got)
	}
	next := home.DeepCopy()
	next.UID, next.Labels = "next", map[string]string{"app": "next"}
	elsewhere := remotePod(corev1.PodStatus{})
	elsewhere.Spec.NodeName = "there"
	for _, home := range []*corev1.Pod{nil, next} { // the node would ignore a pod with the name of another node
		if got := homeView(elsewhere, home, "vk-0", byHome); got.Spec.NodeName != "vk-0" {
			t.Errorf("a pod that home does not have is shown on node %s, want vk-0", got.Spec.NodeName)
		}
	}
	if got := homeView(elsewhere, next, "vk-0", byHome); got.UID != "home" || got.Labels["app"] == "next" {
		t.Errorf("the old pod is shown with UID %s and labels %v of the next of its name", got.UID, got.Labels)
	}
}

func TestRoom(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus, list corev1.ResourceList) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: list,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
	}
	pod := func(on string, labels map[string]string, cpu string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{NodeName: on, Containers: []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: q(cpu)}}}}}}
	}
	size := corev1.ResourceList{corev1.ResourceCPU: q("4"), corev1.ResourcePods: q("10")}
	nodes := []*corev1.Node{node("a", corev1.ConditionTrue, size), node("b", corev1.ConditionTrue, size), node("dead", corev1.ConditionFalse, size)}
	closed := node("closed", corev1.ConditionTrue, size)
	closed.Spec.Unschedulable = true
	room := Room(append(nodes, closed), []*corev1.Pod{pod("a", nil, "1500m"), pod("b", testHome.Labels(), "1"), pod("dead", nil, "1")}, testHome)
	if cpu, pods := room[corev1.ResourceCPU], room[corev1.ResourcePods]; cpu.String() != "6500m" || pods.Value() != 19 {
		t.Errorf("the room is %s CPUs for %s pods, want 6500m for 19", cpu.String(), pods.String())
	}
	if got := NotReady(nodes); len(got) != 1 || got[0] != "dead" {
		t.Errorf("not ready: %v, want dead", got)
	}
}

// TestRoomCountsAsTheSchedulerDoes counts the requests of whole pods, and sidecars together with the init
// containers after them.
func TestRoomCountsAsTheSchedulerDoes(t *testing.T) {
	cpu := func(of string) corev1.Container {
		return corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: q(of)}}}
	}
	sidecar := cpu("1")
	sidecar.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	for name, test := range map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"pod":               {corev1.PodSpec{Containers: []corev1.Container{cpu("1")}, Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: q("3")}}}, "7"},
		"init container":    {corev1.PodSpec{Containers: []corev1.Container{cpu("1")}, InitContainers: []corev1.Container{cpu("2")}}, "8"},
		"sidecar before it": {corev1.PodSpec{Containers: []corev1.Container{cpu("1")}, InitContainers: []corev1.Container{sidecar, cpu("2")}}, "7"},
		"overhead":          {corev1.PodSpec{Containers: []corev1.Container{cpu("1")}, Overhead: corev1.ResourceList{corev1.ResourceCPU: q("500m")}}, "8500m"},
	} {
		t.Run(name, func(t *testing.T) {
			test.spec.NodeName = "a"
			kept, err := onlyRequests(&corev1.Pod{Spec: test.spec})
			if err != nil {
				t.Fatal(err)
			}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: q("10")},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
			room := Room([]*corev1.Node{node}, []*corev1.Pod{kept.(*corev1.Pod)}, testHome)
			if got := room[corev1.ResourceCPU]; got.Cmp(q(test.want)) != 0 {
				t.Errorf("the room is %s CPUs, want %s", got.String(), test.want)
			}
		})
	}
}
