// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestRandomSchedules lets users, faults and restarts do what they like for a
// while, and then looks whether both sides agree and no promise was broken.
func TestRandomSchedules(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			b := memory.New()
			c := &chaos{Rand: rand.New(rand.NewPCG(seed, 1)), backend: b}
			b.StopTime = time.Duration(c.IntN(4)) * time.Second
			b.Fault = c.fault
			var configs []func(*PodControllerConfig)
			if c.IntN(2) == 0 {
				configs = append(configs, silent)
			}
			inWorld(t, b, func(w *world) {
				w.api.Fault = func(verb, _, _ string) error {
					if (verb == "patch" || verb == "delete" || verb == "get") && c.unlucky() {
						return apierrors.NewServiceUnavailable("chaos")
					}
					return nil
				}
				w.start()
				for range 150 {
					c.step(w)
				}
				c.calm()
				w.pass(15 * time.Minute)
				c.wantAgreement(w)
			}, configs...)
		})
	}
}

type chaos struct {
	*rand.Rand
	backend *memory.Backend
	uids    int

	mu    sync.Mutex
	dice  *rand.Rand // guarded by mu; for faults, which come from any goroutine
	quiet bool       // guarded by mu
}

func (c *chaos) unlucky() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dice == nil {
		c.dice = rand.New(rand.NewPCG(7, 7))
	}
	return !c.quiet && c.dice.IntN(5) == 0
}

func (c *chaos) calm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quiet = true
}

func (c *chaos) fault(ctx context.Context, method, _ string) error {
	if c.unlucky() {
		return fmt.Errorf("%s: %w", method, memory.ErrUnwell)
	}
	if method == "create" && c.unlucky() {
		<-time.After(time.Second)
	}
	return nil
}

// bound is a pod with a UID of its own, and with a label: of a copy without any,
// a restart concludes that the backend keeps none.
func (c *chaos) bound(name string) *corev1.Pod {
	c.uids++
	p := bound(name, types.UID(fmt.Sprint("u", c.uids)))
	p.Labels = map[string]string{"step": "0"}
	return p
}

// step does one thing to one pod.
func (c *chaos) step(w *world) {
	name := fmt.Sprint("p", c.IntN(6))
	api := w.api.Pod("d", name)
	switch what := c.IntN(20); {
	case what == 0:
		w.halt()
		if c.IntN(2) == 0 && api != nil {
			w.api.Delete("d", name, 0)
		}
		w.start()
	case api == nil:
		w.api.Create(c.bound(name))
	case what < 4:
		w.api.Delete("d", name, int64(c.IntN(5)))
	case what < 6:
		w.api.Delete("d", name, 0)
		w.api.Create(c.bound(name))
	case what < 9:
		w.api.Change("d", name, func(p *corev1.Pod) { p.Labels = map[string]string{"step": fmt.Sprint(c.Uint32())} })
	case what < 11:
		w.api.Change("d", name, func(p *corev1.Pod) { p.Spec.Containers[0].Image += "x" })
	case what < 13:
		w.api.Compact()
	}
	w.pass(time.Duration(c.IntN(3000)) * time.Millisecond)
}

// wantAgreement fails the test unless API server and backend have the same pods.
func (c *chaos) wantAgreement(w *world) {
	w.Helper()
	for i := range 6 {
		name := fmt.Sprint("p", i)
		api, backend := w.api.Pod("d", name), c.backend.Has("d/"+name)
		switch {
		case api == nil && backend != nil:
			w.Errorf("%s (%s) is left at the backend", name, backend.UID)
		case api == nil:
		case api.DeletionTimestamp != nil:
			w.Errorf("%s is deleted and still there: %+v", name, api.Status)
		case api.Status.Phase == corev1.PodFailed || api.Status.Phase == corev1.PodSucceeded:
			w.Errorf("%s has ended, and nobody asked for that: %+v", name, api.Status)
		case backend == nil:
			w.Errorf("%s is not at the backend; in the API server: %+v", name, api.Status)
		case backend.UID != "" && backend.UID != api.UID:
			w.Errorf("the backend has %s as %s, want %s", name, backend.UID, api.UID)
		case backend.Spec.Containers[0].Image != api.Spec.Containers[0].Image || backend.Labels["step"] != api.Labels["step"]:
			w.Errorf("the backend has %s with %s %v, want %s %v", name, backend.Spec.Containers[0].Image, backend.Labels, api.Spec.Containers[0].Image, api.Labels)
		case api.Status.Phase != corev1.PodRunning || api.Status.ObservedGeneration != api.Generation || api.Status.Message != "":
			w.Errorf("%s, generation %d: %+v", name, api.Generation, api.Status)
		}
	}
	if have, want := w.ctl.states.size(), w.api.Len(); have != want {
		w.Errorf("%d states for %d pods", have, want)
	}
	if n := w.ctl.SyncPodsFromKubernetesQueueLen() + w.ctl.SyncPodStatusFromProviderQueueLen() + w.ctl.DeletePodsFromKubernetesQueueLen(); n != 0 {
		w.Errorf("%d keys are left in the queues", n)
	}
}
