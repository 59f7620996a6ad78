// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	k8stesting "k8s.io/client-go/testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/objects"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestQuarantineBeginsAnewForAPodThatCameBack: a pod that looked like an orphan and is wanted again is no longer an orphan.
func TestQuarantineBeginsAnewForAPodThatCameBack(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		early := w.runTwenty()
		lost := make([]*corev1.Pod, 15)
		for i := range lost {
			lost[i] = w.api.Pod("d", fmt.Sprint("p", i+5))
		}
		w.loseMost(early)
		w.pass(time.Minute)
		for _, p := range lost {
			w.api.Create(p)
		}
		w.pass(time.Minute)
		w.ctl.worker.orphans.mu.Lock()
		left := len(w.ctl.worker.orphans.missing)
		w.ctl.worker.orphans.mu.Unlock()
		if left != 0 {
			t.Errorf("%d pods still count as orphans after all came back", left)
		}
		if st := w.ctl.states.get("d/p5"); len(st.others) > 0 {
			t.Errorf("p5 is still in quarantine: %+v", st.others)
		}
		w.pass(10 * time.Minute)
		w.loseMost(early)
		w.pass(4 * time.Minute)
		if b.Len() != 20 {
			t.Errorf("%d pods are left at the backend, want all 20 to be held a second time", b.Len())
		}
	})
}

// runTwenty runs the pods p0 to p19, and returns the revision with five pods.
func (w *world) runTwenty() (revision int64) {
	for i := range 20 {
		w.api.Create(bound(fmt.Sprint("p", i), ""))
		if i == 4 {
			w.pass(time.Second)
			revision = w.api.Revision()
		}
	}
	w.pass(time.Second)
	return revision
}

// loseMost restores the API server from a backup with five pods.
func (w *world) loseMost(revision int64) {
	w.api.Restore(revision)
	w.pass(time.Second)
}

// TestAPanicIsNoAnswer: a list counts only if GetPod has answered.
func TestAPanicIsNoAnswer(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		p := bound("p", "a")
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		w.api.Create(p)
		w.pass(time.Minute)
		b.Script(func(_ context.Context, method, _ string) error {
			if method == "get" {
				panic("boom")
			}
			return nil
		})
		w.pass(10 * time.Minute)
		w.wantPhase("p", corev1.PodRunning)
		wantCalls(t, b, "create d/p")
	}, func(cfg *PodControllerConfig) { cfg.Provider = emptyLists{memory.Notifying{Backend: b}} })
}

// TestSyncErrorWithTheOldPodShowsInTheNewOne: the old pod is the reason why the new one waits.
func TestSyncErrorWithTheOldPodShowsInTheNewOne(t *testing.T) {
	b := memory.New()
	b.Fault = memory.FailFirst("delete", 1000)
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "old"))
		w.pass(time.Second)
		w.api.Delete("d", "p", 0)
		w.api.Create(bound("p", "new"))
		w.pass(time.Minute)
		if got := w.api.Pod("d", "p").Status.Message; !strings.Contains(got, memory.ErrUnwell.Error()) {
			t.Errorf("message of the new pod is %q, want why the old one does not go", got)
		}
	})
}

// TestOldPodsConfigMapIsLetGo: a pod of the same name immediately replaces the pod that refers to the ConfigMap.
func TestOldPodsConfigMapIsLetGo(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		var mu sync.Mutex
		var watches []*watch.FakeWatcher
		w.objects.PrependWatchReactor("configmaps", func(k8stesting.Action) (bool, watch.Interface, error) {
			mu.Lock()
			defer mu.Unlock()
			watches = append(watches, watch.NewFake())
			return true, watches[len(watches)-1], nil
		})
		store := objects.NewStore(w.objects)
		ctx, cancel := context.WithCancel(w.Context())
		ended := make(chan error, 1)
		go func() { ended <- store.Run(ctx) }()
		defer func() {
			w.halt()
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}()
		w.configs = append(w.configs, func(cfg *PodControllerConfig) {
			cfg.ConfigMapInformer, cfg.SecretInformer = store.ConfigMaps(), store.Secrets()
		})
		w.start()
		optional := true
		old := bound("p", "old")
		old.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}, Optional: &optional,
		}}}
		w.api.Create(old)
		w.pass(time.Second)
		w.api.Delete("d", "p", 0)
		w.api.Create(bound("p", "new"))
		w.pass(time.Minute)
		w.wantPhase("p", corev1.PodRunning)
		mu.Lock()
		defer mu.Unlock()
		if len(watches) != 1 || !watches[0].IsStopped() {
			t.Errorf("%d watches of the old pod's ConfigMap, want one, which has ended", len(watches))
		}
	})
}

// TestForcedDeletionAsksAgainWithLessTimeAtMost: the deletion timestamp and the removal follow each other, and the backend is slow.
func TestForcedDeletionAsksAgainWithLessTimeAtMost(t *testing.T) {
	b := memory.New()
	b.StopTime = 5 * time.Second
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.api.Delete("d", "p", 30)
		w.pass(time.Second)
		w.api.Delete("d", "p", 0)
		w.pass(time.Minute)
		// If the node sees the new grace period before the pod is gone, it calls DeletePod once more.
		if n := b.Count("delete d/p"); n < 1 || n > 2 {
			t.Errorf("calls are %q, want one or two DeletePods", b.Calls())
		}
		if b.Has("d/p") != nil || w.ctl.states.size() != 0 {
			t.Errorf("backend has %v, %d states are left", b.Has("d/p"), w.ctl.states.size())
		}
	})
}
