// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// silentNode is a fake node of the lower cluster: only its status reports exist.
type silentNode struct {
	*testing.T
	api  *testapi.API
	name string
}

func newSilentNode(t *testing.T, api *testapi.API) *silentNode {
	t.Helper()
	n := &silentNode{t, api, api.NodeName(t)}
	_, err := api.Client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{remotetest.Label: n.name}},
		Status:     corev1.NodeStatus{Capacity: remotetest.Roomy(), Allocatable: remotetest.Roomy()},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// speak makes the node report Ready again and again, until stop is called.
func (n *silentNode) speak() (stop func()) {
	n.Helper()
	say := func(ctx context.Context) error {
		patch, err := json.Marshal(map[string]any{"status": corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now()}}}})
		if err == nil {
			_, err = n.api.Client.CoreV1().Nodes().Patch(ctx, n.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		}
		return err
	}
	if err := say(n.Context()); err != nil {
		n.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(n.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				_ = say(ctx) // the next report may succeed
			case <-ctx.Done():
				return
			}
		}
	}()
	stop = func() { cancel(); <-done }
	n.Cleanup(stop)
	return stop
}

// runs makes the kubelet of the node report a pod as Ready.
func (n *silentNode) runs(namespace, name string) {
	n.Helper()
	now := metav1.Now()
	patch, err := json.Marshal(map[string]any{"status": corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &now,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: now}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Ready: true, Image: "program", ContainerID: "silent://1", State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: now}}}},
	}})
	if err == nil {
		_, err = n.api.Client.CoreV1().Pods(namespace).Patch(n.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil {
		n.Fatal(err)
	}
}

// TestSilentLowerNodeIsSeen silences a node of the lower cluster. The lower cluster marks its pod as not Ready,
// which shows here, on the pod and on the node, and so does the return of the node.
func TestSilentLowerNodeIsSeen(t *testing.T) {
	t.Parallel()
	lower := testapi.New(t, testapi.Options{ControllerManagerArgs: []string{"--node-monitor-period=1s", "--node-monitor-grace-period=10s"}})
	h := newHome(t, testapi.Start(t), startWorker(t, lower))
	n := newSilentNode(t, lower)
	stop := n.speak()
	h.config.Capacity, h.config.Placement.NodeSelector = nil, map[string]string{remotetest.Label: n.name}
	h.start()
	h.create("web", 1)
	var here *corev1.Pod
	shows := func(what string, want func(ready corev1.PodCondition) bool) {
		t.Helper()
		h.Until(what, func() (bool, string) {
			var err error
			if here, err = h.api.Client.CoreV1().Pods(h.ns).Get(t.Context(), "web-0", metav1.GetOptions{}); err != nil {
				return false, err.Error()
			}
			for _, c := range here.Status.Conditions {
				if c.Type == corev1.PodReady {
					return want(c), fmt.Sprint(c)
				}
			}
			return want(corev1.PodCondition{}), fmt.Sprint(here.Status)
		})
	}
	shows("the pod is in the lower cluster", func(corev1.PodCondition) bool {
		there, err := lower.Client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{LabelSelector: h.home().Selector()})
		return err == nil && len(there.Items) == 1 && there.Items[0].Spec.NodeName == n.name
	})
	namespace, name := h.home().NamespaceName(h.ns), h.home().PodName(here)
	isReady := func(c corev1.PodCondition) bool { return c.Status == corev1.ConditionTrue }
	n.runs(namespace, name)
	shows("the pod is Ready", isReady)
	before := here.Status.ContainerStatuses

	stop()
	shows("the pod is not Ready", func(c corev1.PodCondition) bool { return c.Status == corev1.ConditionFalse })
	if here.Status.Phase != corev1.PodRunning || fmt.Sprint(here.Status.ContainerStatuses[0].State) != fmt.Sprint(before[0].State) {
		t.Errorf("of the silent node the pod is %s, and its containers are %v: nobody knows that they have ended", here.Status.Phase, here.Status.ContainerStatuses)
	}
	nodes := func(status corev1.ConditionStatus, says string) {
		t.Helper()
		h.Until("the node says of those of the lower cluster: "+says, func() (bool, string) {
			is, err := h.api.Client.CoreV1().Nodes().Get(t.Context(), h.Node, metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			for _, c := range is.Status.Conditions {
				if c.Type == "RemoteNodesReady" {
					return c.Status == status && strings.Contains(c.Message, says), fmt.Sprint(c)
				}
			}
			return false, "it has no condition"
		})
	}
	nodes(corev1.ConditionFalse, n.name)

	n.speak()
	n.runs(namespace, name)
	shows("the pod is Ready again", isReady)
	nodes(corev1.ConditionTrue, "")
}

// TestQuotaOfTheLowerCluster has a quota that prevents a pod. The pod waits with the message of the lower
// cluster, and is created once there is room.
func TestQuotaOfTheLowerCluster(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "quota", "vk-0")
	ns := w.API.Namespace(t)
	u.config.Namespaces = map[string]string{"default": ns}
	quotas := w.API.Client.CoreV1().ResourceQuotas(ns)
	one := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}
	if _, err := quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: corev1.ResourceQuotaSpec{Hard: one}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	u.Until("the quota counts", func() (bool, string) {
		q, err := quotas.Get(t.Context(), "one", metav1.GetOptions{})
		return err == nil && len(q.Status.Hard) == 1, fmt.Sprint(err)
	})
	u.Put("default", "objects", "one")
	p, _ := u.start()
	first, second := u.Pod("default", "first", stays()), withObjects(u.Pod("default", "second", stays()))
	u.Create(p, first)
	u.UntilRuns(p, first)
	u.Until("the quota is used", func() (bool, string) { // the API server may have accepted the pod before it saw the quota
		q, err := quotas.Get(t.Context(), "one", metav1.GetOptions{})
		used := q.Status.Used[corev1.ResourcePods]
		return err == nil && used.Value() == 1, fmt.Sprint(used.String(), err)
	})
	if err := p.CreatePod(t.Context(), second.DeepCopy()); err == nil || errdefs.IsInvalidInput(err) || errdefs.IsNotFound(err) || !strings.Contains(err.Error(), "exceeded quota: one") {
		t.Errorf("CreatePod beyond the quota: got %v, want an error that passes, and what the lower cluster says", err)
	}
	u.Until("nothing is kept for the pod that waits", func() (bool, string) { n := u.copies(); return n == 0, fmt.Sprint(n) })
	u.UntilRuns(p, first)
	u.Delete(p, first)
	u.UntilGone(p, first)
	u.Until("the other pod is made", func() (bool, string) {
		err := p.CreatePod(t.Context(), second.DeepCopy())
		return err == nil, fmt.Sprint(err)
	})
	u.UntilRuns(p, second)
	u.Delete(p, second)
	u.UntilGone(p, second)
}

// removedThere removes pods in the lower cluster. A pod that restarts is made again, with one more restart. A
// pod that runs once has failed, with the reason. Neither has succeeded.
func (h *home) removedThere() {
	h.Helper()
	h.start()
	h.create("stays", 6) // so that fewer than half of the pods are missing
	policies := map[string]corev1.RestartPolicy{"web": corev1.RestartPolicyAlways, "job": corev1.RestartPolicyNever}
	pods := h.api.Client.CoreV1().Pods(h.ns)
	for name, policy := range policies {
		pod := h.pod(name)
		pod.Spec.RestartPolicy = policy
		if _, err := pods.Create(h.Context(), pod, metav1.CreateOptions{}); err != nil {
			h.Fatal(err)
		}
	}
	before := h.untilSettled(8)
	for name := range policies {
		pod, err := pods.Get(h.Context(), name, metav1.GetOptions{})
		if err != nil {
			h.Fatal(err)
		}
		there := h.worker.API.Client.CoreV1().Pods(h.home().NamespaceName(h.ns))
		if err := there.Delete(h.Context(), h.home().PodName(pod), metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(1))}); err != nil {
			h.Fatal(err)
		}
	}
	h.Until("the job has failed", func() (bool, string) {
		pod, err := pods.Get(h.Context(), "job", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		s := pod.Status
		if s.Phase == corev1.PodSucceeded {
			h.Fatalf("a pod that somebody removed has succeeded: %s %s", s.Reason, s.Message)
		}
		return s.Phase == corev1.PodFailed && s.Reason != "" && s.Message != "", fmt.Sprint(s.Phase, " ", s.Reason, ": ", s.Message)
	})
	h.Until("the other one runs again", func() (bool, string) {
		pod, err := pods.Get(h.Context(), "web", metav1.GetOptions{})
		if err != nil || len(pod.Status.ContainerStatuses) != 1 {
			return false, fmt.Sprint(err)
		}
		c := pod.Status.ContainerStatuses[0]
		return pod.Status.Phase == corev1.PodRunning && c.RestartCount == 1 && c.ContainerID != strings.Fields(before["web"])[0], fmt.Sprint(c)
	})
	if made := h.created(); made != 9 {
		h.Errorf("the lower API server made %d pods, want the 8 and one again", made)
	}
}
