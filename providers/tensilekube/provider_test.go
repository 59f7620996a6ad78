// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

func stays() program.Program { return remotetest.Stays() }

func withObjects(pod *corev1.Pod) *corev1.Pod { return remotetest.WithObjects(pod) }

// side describes this upper cluster for the shared tests of providers.
func (u *upper) side() remotetest.Side {
	return remotetest.Side{
		Home: u.Home, Worker: u.worker.Worker, Line: u.line, Cluster: u.home(), Namespace: u.home().NamespaceName, Other: "refreshed",
		Start: func() (remotetest.Provider, func()) { return u.start() }, Lose: u.worker.Lose,
	}
}

func (u *upper) refreshed(p *provider) { u.side().Refreshed(p) }

func (u *upper) copies() int { return u.side().Copies() }

func TestRestartWritesNothing(t *testing.T) {
	u := newUpper(t, startWorker(t, testapi.Start(t)), "restart", "vk-0")
	if got := u.remote(u.side().RestartWritesNothing()).Labels["app"]; got != "changed" {
		t.Errorf("the label of the remote pod is %q, want changed", got)
	}
}

func TestTwoUpperClustersShareOne(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	remotetest.ShareOneCluster([]remotetest.Side{newUpper(t, w, "first", "vk-0").side(), newUpper(t, w, "second", "vk-0").side(), newUpper(t, w, "first", "vk-1").side()})
}

func TestSameNameHundredTimes(t *testing.T) {
	newUpper(t, startWorker(t, testapi.Start(t)), "same-name", "vk-0").side().SameNameHundredTimes()
}

func TestTokensOfHome(t *testing.T) {
	newUpper(t, startWorker(t, testapi.Start(t)), "tokens", "vk-0").side().TokensOfHome()
}

func TestDarkRemoteCluster(t *testing.T) {
	newUpper(t, startWorker(t, testapi.Start(t)), "dark", "vk-0").side().Dark()
}

func TestRemovedInTheRemoteCluster(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "removed", "vk-0")
	p, _ := u.start()
	pod := u.Pod("default", "job", stays())
	u.Create(p, pod)
	seen := u.UntilRuns(p, pod)
	remote := u.remote(pod)
	if err := w.API.Client.CoreV1().Pods(remote.Namespace).Delete(t.Context(), remote.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(1))}); err != nil {
		t.Fatal(err)
	}
	u.UntilGone(p, pod)
	for _, r := range u.ReportsOf(pod.UID) {
		if r.Status.Phase != corev1.PodRunning && r.Status.Phase != corev1.PodPending {
			t.Errorf("a pod that somebody removed over there was reported as %s", r.Status.Phase)
		}
	}
	home := pod.DeepCopy()
	home.Status = seen.Status
	u.Create(p, home)
	if got := u.UntilRuns(p, pod).Status.ContainerStatuses[0].RestartCount; got != 1 {
		t.Errorf("the pod that was made again has %d restarts, want 1", got)
	}
}

func TestHomeIsRefused(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "loop", "vk-0")
	service, err := w.API.Client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Services.Add(service); err != nil {
		t.Fatal(err)
	}
	p, _ := u.start()
	if err := p.CreatePod(t.Context(), u.Pod("default", "web", stays())); err == nil || !strings.Contains(err.Error(), "home cluster") {
		t.Errorf("CreatePod in the home cluster: got %v, want a refusal", err)
	}
	u.Until("the node says why it is not Ready", func() (bool, string) {
		err := p.Ping(t.Context())
		return err != nil && strings.Contains(err.Error(), "home cluster"), fmt.Sprint(err)
	})
}

func TestNamespaceIsGone(t *testing.T) {
	t.Parallel()
	newUpper(t, startWorker(t, testapi.Start(t)), "namespace", "vk-0").side().NamespaceIsGone()
}

// TestForeignNamespaceIsRefused has a namespace of another owner in the place of ours.
func TestForeignNamespaceIsRefused(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "foreign", "vk-0")
	p, _ := u.start()
	_, err := w.API.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: u.home().NamespaceName("default")}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	err = p.CreatePod(t.Context(), u.Pod("default", "web", stays()))
	if err == nil || !strings.Contains(err.Error(), "is not that of default") {
		t.Errorf("CreatePod in a namespace of somebody else: got %v, want a refusal", err)
	}
}
