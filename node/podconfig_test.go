// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

func TestFilterIsAskedAtAddUpdateAndDelete(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	inWorld(t, memory.New(), func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.api.Change("d", "p", func(p *corev1.Pod) { p.Labels = map[string]string{"step": "update"} })
		w.pass(time.Second)
		w.api.Create(bound("foreign", "b"))
		w.pass(time.Second)
		wantCalls(t, w.backend, "create d/p", "update d/p")
		w.api.Delete("d", "p", 5)
		w.pass(10 * time.Second)
		if !seen["add"] || !seen["update"] || !seen["delete"] {
			t.Errorf("asked at %v, want add, update and delete", seen)
		}
	}, func(cfg *PodControllerConfig) {
		cfg.PodEventFilterFunc = func(_ context.Context, p *corev1.Pod) bool {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case p.DeletionTimestamp != nil:
				seen["delete"] = true
			case p.Labels["step"] == "update":
				seen["update"] = true
			default:
				seen["add"] = true
			}
			return p.Name != "foreign"
		}
	})
}

func TestNewPodControllerNamesWhatIsMissing(t *testing.T) {
	var typedNil *memory.Backend
	inWorld(t, memory.New(), func(w *world) {
		w.configs = append(w.configs, func(cfg *PodControllerConfig) {
			for name, lack := range map[string]func(*PodControllerConfig){
				"missing core client":         func(c *PodControllerConfig) { c.PodClient = nil },
				"missing event recorder":      func(c *PodControllerConfig) { c.EventRecorder = nil },
				"missing pod informer":        func(c *PodControllerConfig) { c.PodInformer = nil },
				"missing config map informer": func(c *PodControllerConfig) { c.ConfigMapInformer = nil },
				"missing secret informer":     func(c *PodControllerConfig) { c.SecretInformer = nil },
				"missing service informer":    func(c *PodControllerConfig) { c.ServiceInformer = nil },
				"missing provider":            func(c *PodControllerConfig) { c.Provider = typedNil },
			} {
				broken := *cfg
				lack(&broken)
				if _, err := NewPodController(broken); err == nil || err.Error() != name || !errdefs.IsInvalidInput(err) {
					t.Errorf("got %v, want %s", err, name)
				}
			}
		})
		w.start()
	})
}
