// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestNothingIsLostThatListsAreLateToShowAfterARestart checks that a group that lists do not show yet is not
// reported as missing, and is found once lists show it.
func TestNothingIsLostThatListsAreLateToShowAfterARestart(t *testing.T) {
	a := testAzure(t)
	before := a.provider(t, nil).run(t)
	if err := a.Stale(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	pod := programPod("u-1", program.Program{Stay: program.Forever})
	if err := before.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.StartTime = new(metav1.Now())
	pods := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	if err := pods.Add(pod); err != nil {
		t.Fatal(err)
	}
	a.pods = corev1listers.NewPodLister(pods)
	after := a.provider(t, nil).run(t)
	if err := after.Cache().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := after.GetPod(t.Context(), pod.Namespace, pod.Name); !errdefs.IsNotFound(err) || after.AnswersForAllPods() {
		t.Errorf("the first list lacks it: got %v, and it answers for all pods: %t", err, after.AnswersForAllPods())
	}
	if err := a.Stale(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	until(t, "the pod to run", func() bool {
		now, err := after.GetPod(t.Context(), pod.Namespace, pod.Name)
		return err == nil && now.Status.Phase == corev1.PodRunning
	})
}
