// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/providers/admiralty"
)

// watched returns a target with a fake API and synced watches.
func watched(t *testing.T, node, host string, objects ...runtime.Object) *target {
	t.Helper()
	w, err := watchTarget(Target{Node: node, access: &rest.Config{Host: host}}, fake.NewClientset(objects...), func() {})
	if err != nil {
		t.Fatal(err)
	}
	go w.run(t.Context())
	synctest.Wait()
	return w
}

// here returns the local node of a target.
func here(name string) *corev1.Node {
	n := machine(name, "9")
	n.Spec.Taints = []corev1.Taint{{Key: admiralty.LabelProvider, Value: admiralty.ProviderName, Effect: corev1.TaintEffectNoSchedule}}
	n.Labels[admiralty.LabelProvider] = admiralty.ProviderName
	return n
}

// electedOf returns a pod of a namespace that has waited since the given second.
func electedOf(t *testing.T, namespace, cpu string, second int64) *corev1.Pod {
	t.Helper()
	pod := asks(types.UID("of-"+namespace), cpu)
	pod.Namespace, pod.CreationTimestamp = namespace, metav1.Unix(second, 0)
	pod.Annotations = map[string]string{annotationElect: ""}
	if _, err := Elect(pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// TestRefusedBindingTakesNoRoom has a pod that comes first, but a policy of its namespace refuses its binding.
func TestRefusedBindingTakesNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed, open := electedOf(t, "closed", "3", 1), electedOf(t, "open", "2", 2)
		client := fake.NewClientset(closed, open)
		tries := map[string]int{}
		client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if a.GetSubresource() != "binding" {
				return false, nil, nil
			}
			if tries[a.GetNamespace()]++; a.GetNamespace() == "closed" {
				return true, nil, apierrors.NewForbidden(corev1.Resource("pods/binding"), closed.Name, errors.New("the policy says no"))
			}
			return true, nil, nil
		})
		s, err := newScheduler(client, Config{})
		if err != nil {
			t.Fatal(err)
		}
		s.events = record.NewFakeRecorder(100)
		s.targets = []*target{watched(t, "t", "one", machine("there", "4"))}
		for _, o := range []any{closed, open} {
			if err := s.podInformer.GetStore().Add(o); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.nodeInformer.GetStore().Add(here("t")); err != nil {
			t.Fatal(err)
		}
		s.runRound(t.Context())
		if tries["closed"] != 1 || tries["open"] != 1 {
			t.Errorf("one round tried %v, want each pod once", tries)
		}
		if _, err := s.targets[0].client.CoreV1().Nodes().Create(t.Context(), machine("more", "3"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for range 600 {
			time.Sleep(time.Second)
			s.runRound(t.Context())
		}
		if n := tries["closed"]; n < 10 || n > 20 {
			t.Errorf("in ten minutes the binding was tried %d times, want it to be tried less and less often", n)
		}
		if tries["open"] != 1 {
			t.Errorf("a pod that is bound was bound %d times", tries["open"])
		}
		got, err := client.CoreV1().Pods("closed").Get(t.Context(), closed.Name, metav1.GetOptions{})
		if err != nil || len(got.Status.Conditions) != 1 || !strings.Contains(got.Status.Conditions[0].Message, "the policy says no") {
			t.Errorf("the pod says %+v (%v), want why it waits", got.Status.Conditions, err)
		}
	})
}

// TestTargetsOfOneClusterShareItsRoom has two local nodes for one cluster, and one for another cluster.
func TestTargetsOfOneClusterShareItsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		targets := []*target{watched(t, "a", "one", machine("there", "4")), watched(t, "b", "one", machine("there", "4")), watched(t, "c", "other", machine("there", "3"))}
		bound := map[string][]*corev1.Pod{"b": {electedOf(t, "bound", "2", 1)}}
		all := newCandidates(targets, here, bound)
		for _, want := range []string{"c", "a", ""} {
			got := ""
			best, why := chooseTarget(all, electedOf(t, "next", "2", 2))
			if best != nil {
				got = best.target.Node
				best.takePod(electedOf(t, "next", "2", 2), nil)
			}
			if got != want {
				t.Errorf("the next pod goes to %q (%s), want %q", got, why, want)
			}
		}
	})
}
