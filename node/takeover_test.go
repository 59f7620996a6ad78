// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// replaying delivers its reports during a request, which takes a second, and keeps ended pods.
type replaying struct{ memory.Notifying }

func (r replaying) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod, err := r.Notifying.GetPod(ctx, namespace, name)
	if err == nil {
		r.Tell(pod)
		<-time.After(time.Second)
	}
	return pod, err
}

func (r replaying) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	if p := r.Has(memory.Key(pod)); p != nil && lifecycle.Terminal(&p.Status) {
		return nil
	}
	return r.Notifying.DeletePod(ctx, pod)
}

func replays(cfg *PodControllerConfig) {
	cfg.Provider = replaying{cfg.Provider.(memory.Notifying)}
}

// TestEndedWhileDownAndDeletedTellsItsEnd: the end of a pod is written before its object is removed, even if only the previous daemon
// received the report.
func TestEndedWhileDownAndDeletedTellsItsEnd(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.halt()
		b.Mute()
		b.Change("d/p", func(p *corev1.Pod) { *p = *memory.Ended(p, 3) })
		w.api.Delete("d", "p", 30)
		silent := func(cfg *PodControllerConfig) {
			cfg.Provider = quiet{cfg.Provider.(replaying)}
		}
		w.configs = append(w.configs, silent)
		before := len(w.api.Writes("d/p"))
		w.start()
		w.pass(time.Minute)
		if p := w.api.Pod("d", "p"); p != nil {
			t.Errorf("the pod is still there: %v", p.Status.Phase)
		}
		told := false
		for _, write := range w.api.Writes("d/p")[before:] {
			told = told || strings.Contains(write.Body, `"phase":"Failed"`) && strings.Contains(write.Body, `"exitCode":3`)
		}
		if !told {
			t.Errorf("the end of the pod was never told: %+v", w.api.Writes("d/p")[before:])
		}
	}, replays)
}

// quiet never reports anything.
type quiet struct{ replaying }

func (quiet) NotifyPods(context.Context, func(*corev1.Pod)) {}

// TestLabelsChangedWhileDownSurviveTheFirstReport: the first report of the backend has the labels from before the restart.
func TestLabelsChangedWhileDownSurviveTheFirstReport(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		p := bound("p", "a")
		p.Labels, p.Annotations = map[string]string{"user": "0"}, map[string]string{"user": "0"}
		w.api.Create(p)
		w.pass(time.Second)
		w.halt()
		for _, value := range []string{"1", "2", "3"} {
			b.Mute()
			w.api.Change("d", "p", func(p *corev1.Pod) {
				p.Labels, p.Annotations = map[string]string{"user": value}, map[string]string{"user": value}
			})
			w.start()
			w.pass(time.Minute)
			if p := w.api.Pod("d", "p"); p.Labels["user"] != value || p.Annotations["user"] != value {
				t.Errorf("label is %q and annotation %q, want what the user set, %s", p.Labels["user"], p.Annotations["user"], value)
			}
			w.halt()
		}
	}, replays)
}
