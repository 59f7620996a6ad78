// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/virtual-kubelet/virtual-kubelet/internal/apiwatch"
	"github.com/virtual-kubelet/virtual-kubelet/internal/fanout"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestFault52RestoredAPIServerUnderManyNodes: nodes that share a watch know the versions of the API server no better than the counts of
// their pods.
func TestFault52RestoredAPIServerUnderManyNodes(t *testing.T) {
	const pods, lacking = 100, 60
	for _, bumped := range []bool{false, true} {
		t.Run(fmt.Sprintf("revisions go on=%v", bumped), func(t *testing.T) {
			b := memory.New()
			inWorld(t, b, func(w *world) {
				all := w.api.Pods("")
				shared := fanout.NewPods(apiwatch.NewSource(
					func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return all.List(ctx, o) },
					func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return all.Watch(ctx, o) },
				), []string{"m", "n"}, time.Minute)
				ctx, cancel := context.WithCancel(w.Context())
				ended := make(chan error, 1)
				go func() { ended <- shared.Run(ctx) }()
				defer func() {
					w.halt()
					cancel()
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}()
				w.configs = append(w.configs, func(cfg *PodControllerConfig) { cfg.PodInformer = shared.View("n") })
				w.start()
				w.runPods(0, pods-lacking)
				backup := w.api.Revision()
				w.runPods(pods-lacking, pods)
				calls := len(b.Calls())
				w.api.Restore(backup)
				if bumped { // as `etcdutl snapshot restore --bump-revision` does
					for range 2 * pods {
						w.api.Compact()
					}
				}
				restored := time.Now()
				w.pass(3 * time.Second)
				w.api.Create(bound("new", ""))
				fresh := w.until("a new pod runs", 5*time.Second, func() bool { return w.phase("new") == corev1.PodRunning })
				w.pass(defaultQuarantine - time.Minute - time.Since(restored))
				deleted := 0
				for _, call := range b.Calls()[calls:] {
					if call != "create d/new" {
						deleted++
						w.Errorf("call %q because of the restore", call)
					}
				}
				w.pass(10 * time.Minute)
				if n := b.Len(); n != pods-lacking+1 {
					t.Errorf("%d pods are left at the backend in the end, want %d", n, pods-lacking+1)
				}
				faultrow.Record(t, 52, fmt.Sprintf("restore of a backup that lacks %d of %d pods of one node of several in one process; revisions go on=%v", lacking, pods, bumped),
					"%d deletes for %v; a new pod ran after %v", deleted, defaultQuarantine, fresh)
			}, onNode)
		})
	}
}

// TestOrphansBesideWantedPodsCostNoLists: a backend with another pod under every name is listed no more often than a backend with one such
// pod, and many such pods cast no doubt, because their names are taken by wanted pods.
func TestOrphansBesideWantedPodsCostNoLists(t *testing.T) {
	lists := map[int]int{}
	for _, doubled := range []int{1, 100} {
		b := memory.New()
		inWorld(t, b, func(w *world) {
			w.start()
			w.create("p", 100, time.Second)
			w.pass(time.Minute)
			count := countLists(b)
			for i := range doubled {
				b.Extra(bound(fmt.Sprint("p", i), "another"))
			}
			w.until("the others are gone", 30*time.Second, func() bool { return b.Len() == 100 })
			lists[doubled] = count()
		}, onNode)
	}
	if lists[100] > lists[1]+2 {
		t.Errorf("%d lists for 100 other pods, %d for one", lists[100], lists[1])
	}
}

// countLists returns a function that returns the number of GetPods calls since then.
func countLists(b *memory.Backend) func() int {
	n := make(chan int, 1)
	n <- 0
	b.Script(func(_ context.Context, method, _ string) error {
		if method == memory.List {
			n <- <-n + 1
		}
		return nil
	})
	return func() int { got := <-n; n <- got; return got }
}
