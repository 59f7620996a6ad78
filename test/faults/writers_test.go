// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// writer is another writer of pods. It writes an ascending number to one place in each pod.
type writer struct {
	what  string
	patch func(i int) (types.PatchType, string, []string) // and subresources
	read  func(*corev1.Pod) string
}

const (
	foreignKey  = "example.test/foreign"
	foreignGate = corev1.PodConditionType("example.test/gate")
)

var writers = []writer{
	{
		what: "label",
		patch: func(i int) (types.PatchType, string, []string) {
			return types.MergePatchType, fmt.Sprintf(`{"metadata":{"labels":{%q:"%d"}}}`, foreignKey, i), nil
		},
		read: func(pod *corev1.Pod) string { return pod.Labels[foreignKey] },
	},
	{
		what: "annotation",
		patch: func(i int) (types.PatchType, string, []string) {
			return types.MergePatchType, fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, foreignKey, i), nil
		},
		read: func(pod *corev1.Pod) string { return pod.Annotations[foreignKey] },
	},
	{
		what: "readiness gate",
		patch: func(i int) (types.PatchType, string, []string) {
			body := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":"True","message":"%d"}]}}`, foreignGate, i)
			return types.StrategicMergePatchType, body, []string{"status"}
		},
		read: func(pod *corev1.Pod) string {
			for _, c := range pod.Status.Conditions {
				if c.Type == foreignGate {
					return c.Message
				}
			}
			return ""
		},
	},
}

// TestFault19ForeignWritesSurvive: three other writers change the pods at the same time as the daemon. No write
// is lost.
func TestFault19ForeignWritesSurvive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.opts = append(w.opts, limited(200, 200))
	w.start()
	const pods = 5
	each := inForm(1000, 10000)/len(writers) + 1
	names := numbered("pod", pods)
	for _, name := range names {
		pod := w.pod(name)
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: foreignGate}}
		w.create(pod)
	}
	w.pods.await(t, "the pods run and wait for their gate", func(all []*corev1.Pod) bool {
		return len(all) == pods && allRunning(all)
	})

	ctx, stop := context.WithCancel(t.Context())
	ours := w.keepChanging(ctx, names)
	began := time.Now()
	var group errgroup.Group
	for _, writer := range writers {
		group.Go(func() error { return w.write(writer, names, each) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	stop()
	last := <-ours
	w.pods.await(t, "the daemon's last status has arrived", func(pods []*corev1.Pod) bool { return all(pods, restarted(last)) })

	lost := 0
	for _, writer := range writers {
		lost += w.lost(writer, each, pods)
	}
	versions := len(w.pods.history(began))
	own := versions - each*len(writers)
	if own < pods*3 {
		t.Errorf("the daemon wrote about %d times meanwhile, so this test shows nothing", own)
	}
	w.awaitRunning(pods)
	faultrow.Record(t, 19, fmt.Sprintf("%d writes of labels, annotations and readiness gates to %d pods at %.0f a second while the daemon wrote about %d statuses",
		each*len(writers), pods, float64(each*len(writers))/took.Seconds(), own), "foreign writes lost %d of %d", lost, each*len(writers))
}

func allRunning(pods []*corev1.Pod) bool {
	return all(pods, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
}

// write writes the numbers 1 to n to each pod in turn, 50 a second.
func (w *world) write(by writer, names []string, n int) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for i := 1; i <= n; i++ {
		kind, body, sub := by.patch(i)
		err := again(func(bool) error {
			_, err := w.podClient().Patch(w.Context(), names[i%len(names)], kind, []byte(body), metav1.PatchOptions{}, sub...)
			return err
		})
		if err != nil {
			return fmt.Errorf("write %s %d: %w", by.what, i, err)
		}
		<-ticker.C
	}
	return nil
}

// keepChanging makes the backend report changes until ctx ends, and sends the number of the last change.
func (w *world) keepChanging(ctx context.Context, names []string) <-chan int32 {
	out := make(chan int32, 1)
	go func() {
		var n atomic.Int32
		defer func() { out <- n.Load() }()
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(30 * time.Millisecond):
				w.restarts(names, n.Add(1))
			}
		}
	}()
	return out
}

// lost counts the numbers of a writer that were overwritten, or that are missing at the end.
func (w *world) lost(by writer, n, pods int) (lost int) {
	highest := map[string]int{}
	for _, v := range w.pods.history(time.Time{}) {
		now, _ := strconv.Atoi(by.read(v.Of)) // "" is 0
		if v.Gone || now >= highest[v.Of.Name] {
			highest[v.Of.Name] = now
			continue
		}
		lost++
		w.Errorf("%s of pod %s went from %d to %d", by.what, v.Of.Name, highest[v.Of.Name], now)
	}
	for name, last := range highest {
		if last <= n-pods {
			lost++
			w.Errorf("%s of pod %s is %d at the end of %d writes", by.what, name, last, n)
		}
	}
	return lost
}
