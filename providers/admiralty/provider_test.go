// SPDX-License-Identifier: Apache-2.0

package admiralty

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

func stays() program.Program { return program.Program{Stay: program.Forever} }

// chaperonsOf returns the number of the node's PodChaperons.
func (u *upper) chaperonsOf() int {
	u.Helper()
	client, err := dynamic.NewForConfig(u.worker.API.Config)
	if err != nil {
		u.Fatal(err)
	}
	list, err := client.Resource(podChaperon.Resource).List(u.Context(), metav1.ListOptions{LabelSelector: u.home().Selector()})
	if err != nil {
		u.Fatal(err)
	}
	return len(list.Items)
}

func (u *upper) untilNothingIsLeft() {
	u.Helper()
	u.Until("the target cluster has nothing of the node", func() (bool, string) {
		pods, err := u.worker.API.Client.CoreV1().Pods("").List(u.Context(), metav1.ListOptions{LabelSelector: u.home().Selector()})
		if err != nil {
			return false, err.Error()
		}
		chaperons := u.chaperonsOf()
		return len(pods.Items)+chaperons == 0, fmt.Sprintf("%d pods, %d PodChaperons", len(pods.Items), chaperons)
	})
}

// TestRestartWritesNothing also has a pod without a pod in the target cluster yet.
func TestRestartWritesNothing(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	stopAgent := startChaperons(t, w.API)
	u := newUpper(t, w, "restart", "target-0")
	p, stop := u.start()
	runs := u.Pod("default", "runs", stays())
	u.Create(p, runs)
	id := u.UntilRuns(p, runs).Status.ContainerStatuses[0].ContainerID
	stopAgent()
	waits := u.Pod("default", "waits", stays())
	u.Create(p, waits)
	stop()
	u.line.Writes()
	p, _ = u.start()
	if got := u.UntilRuns(p, runs).Status.ContainerStatuses[0]; got.ContainerID != id {
		t.Errorf("after the restart the container is %s, before it was %s", got.ContainerID, id)
	}
	if list, err := p.GetPods(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("after the restart there are %d pods (%v), want both", len(list), err)
	}
	for _, pod := range []*corev1.Pod{runs, waits} {
		if err := p.UpdatePod(t.Context(), pod.DeepCopy()); err != nil {
			t.Error(err)
		}
	}
	if writes := u.line.Writes(); len(writes) > 0 {
		t.Errorf("the restart wrote to the target cluster: %q", writes)
	}
	if err := p.CreatePod(t.Context(), waits.DeepCopy()); err != nil || u.chaperonsOf() != 2 {
		t.Errorf("a create that is done again: %v, and there are %d PodChaperons, want 2", err, u.chaperonsOf())
	}
	startChaperons(t, w.API)
	u.UntilRuns(p, waits)
}

// TestDelegateFinishedMeanwhile ends a pod while no agent and no node watches it. The node then reports the end
// (admiralty#132).
func TestDelegateFinishedMeanwhile(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	startChaperons(t, w.API)
	u := newUpper(t, w, "finished", "target-0")
	p, stop := u.start()
	pod := u.Pod("default", "job", program.Program{})
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	u.Create(p, pod)
	stop()
	u.Until("the pod has succeeded in the target cluster", func() (bool, string) {
		got, err := w.API.Client.CoreV1().Pods(u.home().NamespaceName("default")).Get(t.Context(), u.home().PodName(pod), metav1.GetOptions{})
		return err == nil && got.Status.Phase == corev1.PodSucceeded, fmt.Sprint(err)
	})
	p, _ = u.start()
	u.Until("the node says that it has", func() (bool, string) {
		got, err := p.GetPod(t.Context(), "default", "job")
		if err != nil {
			return false, err.Error()
		}
		return got.Status.Phase == corev1.PodSucceeded && len(got.Status.ContainerStatuses) == 1, string(got.Status.Phase)
	})
	u.Delete(p, pod)
	u.untilNothingIsLeft()
}

// TestNothingIsStranded deletes a running pod and a pod that was never made, while no agent runs in the target
// cluster (admiralty#16).
func TestNothingIsStranded(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	stopAgent := startChaperons(t, w.API)
	u := newUpper(t, w, "stranded", "target-0")
	p, _ := u.start()
	runs := u.Pod("default", "runs", stays())
	u.Create(p, runs)
	u.UntilRuns(p, runs)
	stopAgent()
	never := u.Pod("default", "never", stays())
	u.Create(p, never)
	if got, err := p.GetPod(t.Context(), "default", "never"); err != nil || got.Status.Phase != corev1.PodPending {
		t.Errorf("a PodChaperon without a pod: got %v, want a pod that is Pending", err)
	}
	for _, pod := range []*corev1.Pod{runs, never} {
		u.Delete(p, pod)
		u.UntilGone(p, pod)
	}
	u.untilNothingIsLeft()
	if err := p.DeletePod(t.Context(), runs); !errdefs.IsNotFound(err) {
		t.Errorf("DeletePod of a pod that is gone: got %v, want the kind not-found", err)
	}
}

// TestRemovedInTheTargetCluster removes the pod of a PodChaperon, whose controller makes no other. The node
// reports the pod as lost, and can make it again.
func TestRemovedInTheTargetCluster(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	startChaperons(t, w.API)
	u := newUpper(t, w, "removed", "target-0")
	p, _ := u.start()
	pod := u.Pod("default", "job", stays())
	u.Create(p, pod)
	seen := u.UntilRuns(p, pod)
	remote := u.remote(pod)
	if err := w.API.Client.CoreV1().Pods(remote.Namespace).Delete(t.Context(), remote.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(1))}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	u.UntilGone(p, pod)
	for _, r := range u.ReportsOf(pod.UID) {
		if r.Status.Phase != corev1.PodRunning && r.Status.Phase != corev1.PodPending {
			t.Errorf("a pod that somebody removed over there was reported as %s", r.Status.Phase)
		}
	}
	u.untilNothingIsLeft()
	home := pod.DeepCopy()
	home.Status = seen.Status
	u.Create(p, home)
	if got := u.UntilRuns(p, pod).Status.ContainerStatuses[0].RestartCount; got != 1 {
		t.Errorf("the pod that was made again has %d restarts, want 1", got)
	}
}

// TestPlainPods has no agent in the target cluster: the node makes the pods itself.
func TestPlainPods(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "plain", "target-0")
	u.config.Object = ""
	p, _ := u.start()
	pod := u.Pod("default", "web", stays())
	u.Create(p, pod)
	u.UntilRuns(p, pod)
	if got := u.remote(pod); len(got.OwnerReferences) > 0 {
		t.Errorf("the pod is owned by %v, want nobody", got.OwnerReferences)
	}
	u.Delete(p, pod)
	u.UntilGone(p, pod)
}

func TestNodeIsTheTarget(t *testing.T) {
	for namespace, want := range map[string]map[string]string{
		"":      {LabelProvider: "admiralty", LabelClusterTarget: "target-0"},
		"teams": {LabelProvider: "admiralty", LabelTargetNamespace: "teams", LabelTarget: "target-0"},
	} {
		u := newUpper(t, &worker{&remotetest.Worker{API: testapi.Start(t)}}, "labels", "target-0")
		u.config.TargetNamespace = namespace
		p, _ := u.start()
		n := &corev1.Node{}
		p.ConfigureNode(t.Context(), n)
		if fmt.Sprint(n.Labels) != fmt.Sprint(want) || n.Status.Allocatable.Cpu().Value() != 1000 {
			t.Errorf("namespace %q: the node has the labels %v and %v, want %v", namespace, n.Labels, n.Status.Allocatable, want)
		}
	}
}
