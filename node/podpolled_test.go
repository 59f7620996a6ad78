// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/membackend"
)

func TestProviderWithoutNotifierIsPolled(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.wantPhase("p", corev1.PodRunning)
		b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = "busy" })
		w.pass(6 * time.Second)
		if got := w.api.Pod("d", "p").Status.Message; got != "busy" {
			t.Errorf("message is %q, want busy", got)
		}
		w.api.Delete("d", "p", -1)
		w.pass(5 * time.Second)
		w.wantPhase("p", "")
		for _, write := range w.api.Writes("d/p") {
			if strings.Contains(write.Body, `"exitCode":0`) {
				t.Errorf("an exit code 0 is invented: %s", write.Body)
			}
		}
	}, silent)
}

func TestProviderWhoseListHasNoStatusIsPolledOneByOne(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		w.start()
		for i := range 30 {
			w.api.Create(bound(fmt.Sprint("p", i), ""))
		}
		w.pass(2 * time.Second)
		for i := range 30 {
			b.Change(fmt.Sprint("d/p", i), func(p *corev1.Pod) { p.Status.Message = "busy" })
		}
		w.pass(6 * time.Second)
		for i := range 30 {
			if got := w.api.Pod("d", fmt.Sprint("p", i)).Status.Message; got != "busy" {
				t.Errorf("message of p%d is %q, want busy", i, got)
			}
		}
	}, func(cfg *PodControllerConfig) { cfg.Provider = bareLists{b} })
}

// bareLists is a provider whose GetPods says which pods there are and no more.
type bareLists struct{ PodLifecycleHandler }

func (b bareLists) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	pods, err := b.PodLifecycleHandler.GetPods(ctx)
	for _, p := range pods {
		p.Status = corev1.PodStatus{}
	}
	return pods, err
}

// TestGetPodErrorWithoutAKind: many providers return a plain error for a pod
// that they do not have.
func TestGetPodErrorWithoutAKind(t *testing.T) {
	b := membackend.New()
	b.Fault = func(_ context.Context, method, key string) error {
		if method == "get" && b.Has(key) == nil {
			return errors.New("unknown pod")
		}
		return nil
	}
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.wantPhase("p", corev1.PodRunning)
		w.api.Delete("d", "p", 5)
		w.pass(10 * time.Second)
		w.wantPhase("p", "")
	})
}
