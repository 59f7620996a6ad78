// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

var makerKind = OwnerKind{
	Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "makers"}, Kind: "Maker",
	Spec: []string{"spec", "pod"}, Status: []string{"status"},
}

// startOwners returns a cluster whose pods are made from owner objects, and both clients.
func startOwners(t *testing.T) (*Cluster, *kubefake.Clientset, *fake.FakeDynamicClient) {
	t.Helper()
	c, err := New(Config{Home: testHome, REST: &rest.Config{Host: "http://127.0.0.1:1"}, Capacity: corev1.ResourceList{}, Owner: &makerKind,
		Pods: corev1listers.NewPodLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}))})
	if err != nil {
		t.Fatal(err)
	}
	pods := kubefake.NewClientset()
	objects := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{makerKind.Resource: "MakerList"})
	c.client, c.owners.client, c.owners.typed = pods, objects, nil
	c.cache = newCache(pods, testHome, "", c.owners)
	if err := c.watchPods(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() { c.cache.run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	if err := c.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, pods, objects
}

// ofHome returns a remote pod of the test's node.
func ofHome(phase corev1.PodPhase) *corev1.Pod {
	pod := remotePod(corev1.PodStatus{Phase: phase})
	for k, v := range testHome.Labels() {
		pod.Labels[k] = v
	}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "web"}}
	return pod
}

// eventually polls for a change that a watch will show.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func TestOwnerStandsInForItsPod(t *testing.T) {
	c, pods, objects := startOwners(t)
	if _, err := c.writer.create(t.Context(), ofHome("")); err != nil {
		t.Fatal(err)
	}
	u, err := objects.Resource(makerKind.Resource).Namespace("r").Get(t.Context(), "web-0-x", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if list, _, _ := unstructured.NestedSlice(u.Object, "spec", "pod", "containers"); len(list) != 1 || u.GetKind() != "Maker" || u.GetLabels()[LabelUID] != "home" {
		t.Errorf("the object is %v, want the spec and the labels of the pod", u.Object)
	}
	eventually(t, "the object is seen", func() bool { return c.findUID("home") != nil })
	if there := c.findUID("home"); !isOwner(there) || there.Spec.Containers[0].Image != "web" || c.podAtHome(there).Status.Phase != corev1.PodPending {
		t.Errorf("without a pod there is %+v, want the object, as a pod that waits", there)
	}
	if _, err := pods.CoreV1().Pods("r").Create(t.Context(), ofHome(corev1.PodRunning), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod is seen", func() bool { return !isOwner(c.findUID("home")) })
	if all := c.everyPod(); len(all) != 1 || all[0].Status.Phase != corev1.PodRunning {
		t.Errorf("with a pod there are %d pods, want the pod alone", len(all))
	}
}

// TestOrderOfRemoval checks that a pod that its owner would make again is removed after its owner, and any other
// pod before it, with the requested grace period.
func TestOrderOfRemoval(t *testing.T) {
	for remakes, want := range map[bool][]string{true: {"makers", "pods"}, false: {"pods", "makers"}} {
		c, pods, objects := startOwners(t)
		c.owners.kind.Remakes = remakes
		if _, err := c.writer.create(t.Context(), ofHome("")); err != nil {
			t.Fatal(err)
		}
		if _, err := pods.CoreV1().Pods("r").Create(t.Context(), ofHome(corev1.PodRunning), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "both are seen", func() bool { return c.cache.findPod("r", "web-0-x") != nil && c.cache.findOwner("r", "web-0-x") != nil })
		var order []string
		note := func(a clienttesting.Action) (bool, runtime.Object, error) {
			order = append(order, a.GetResource().Resource)
			if o := a.(clienttesting.DeleteActionImpl).DeleteOptions; a.GetResource().Resource == "pods" && (*o.GracePeriodSeconds != 7 || *o.Preconditions.UID != "remote") {
				t.Errorf("the pod is deleted with %v, want its grace period and UID", o)
			}
			return false, nil, nil
		}
		pods.PrependReactor("delete", "*", note)
		objects.PrependReactor("delete", "*", note)
		if err := c.writer.remove(t.Context(), c.findUID("home"), 7); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(order, want) {
			t.Errorf("remakes=%v: were removed: %q, want %q", remakes, order, want)
		}
	}
}

// TestFinalStatusIsThePods checks that the last status of a pod wins over the status of its owner, which is
// older if the owner goes after the pod.
func TestFinalStatusIsThePods(t *testing.T) {
	c, _, _ := startOwners(t)
	var told []corev1.PodPhase
	c.notify = func(pod *corev1.Pod) { told = append(told, pod.Status.Phase) }
	c.stopping["home"] = true
	ended, owner := ofHome(corev1.PodFailed), ofHome(corev1.PodPending)
	now := metav1.Now()
	owner.Kind, owner.DeletionTimestamp = makerKind.Kind, &now
	c.recordSeen(ended)
	c.recordSeen(owner)
	if !slices.Equal(told, []corev1.PodPhase{corev1.PodFailed}) {
		t.Errorf("told: %v, want Failed and nothing after it", told)
	}
}

// TestOwnerOfALostPod checks that an owner whose pod was removed does not count as the pod, and is removed.
func TestOwnerOfALostPod(t *testing.T) {
	for _, remakes := range []bool{false, true} {
		c, _, objects := startOwners(t)
		c.owners.kind.Remakes = remakes
		u := map[string]any{}
		phase := corev1.PodSucceeded
		if remakes {
			phase = corev1.PodRunning
		}
		lostOne, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ofHome(phase))
		if err != nil {
			t.Fatal(err)
		}
		u["metadata"], u["status"], u["kind"], u["apiVersion"] = lostOne["metadata"], lostOne["status"], "Maker", "example.com/v1"
		if _, err := objects.Resource(makerKind.Resource).Namespace("r").Create(t.Context(), &unstructured.Unstructured{Object: u}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the object is seen", func() bool { return c.findUID("home") != nil })
		if got := c.podAtHome(c.findUID("home")).Status; !remakes && (got.Phase != corev1.PodRunning || !strings.Contains(got.Reason, "Removed")) {
			t.Errorf("a pod that is lost shows as %s %s, want nothing of its end", got.Phase, got.Reason)
		}
		c.owners.sweepLost(t.Context(), c.runs.keepsObject)
		_, err = objects.Resource(makerKind.Resource).Namespace("r").Get(t.Context(), "web-0-x", metav1.GetOptions{})
		if gone := err != nil; gone == remakes {
			t.Errorf("remakes=%v: after the sweep the object is gone: %v", remakes, gone)
		}
	}
}
