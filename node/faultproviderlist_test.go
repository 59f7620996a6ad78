// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestFault36ListsThatLieDestroyNothing holds also that unwanted pods are removed soon after the lists are correct again.
func TestFault36ListsThatLieDestroyNothing(t *testing.T) {
	const pods = 20
	theirs := bound("theirs", "t")
	theirs.Spec.NodeName = "m"
	faults := map[string]func(b *memory.Backend){
		"error":        func(b *memory.Backend) { b.Inject(memory.Fault{Method: memory.List, Err: memory.ErrUnwell}) },
		"empty":        func(b *memory.Backend) { b.Lie(memory.Lie{Empty: true}) },
		"partial":      func(b *memory.Backend) { b.Lie(memory.Lie{Page: pods / 2}) },
		"other nodes'": func(b *memory.Backend) { b.Lie(memory.Lie{Add: []*corev1.Pod{theirs}}) },
		"stale":        func(b *memory.Backend) { b.Lie(memory.Lie{Stale: true}) },
		"error, and gets": func(b *memory.Backend) {
			b.Inject(memory.Fault{Method: memory.List, Err: memory.ErrUnwell})
			b.Inject(memory.Fault{Method: memory.Get, Err: memory.ErrUnwell})
		},
		"empty, gets fail": func(b *memory.Backend) {
			b.Lie(memory.Lie{Empty: true})
			b.Inject(memory.Fault{Method: memory.Get, Hang: true})
		},
	}
	wrong, slowest := 0, time.Duration(0)
	for _, polled := range []bool{false, true} {
		for name, lie := range faults {
			t.Run(fmt.Sprintf("%s, polled=%v", name, polled), func(t *testing.T) {
				b := memory.New()
				configs := []func(*PodControllerConfig){onNode}
				if polled {
					configs = append(configs, silent)
				}
				inWorld(t, b, func(w *world) {
					w.start()
					w.create("p", pods, time.Second)
					w.pass(time.Minute)
					lie(b)
					b.Extra(bound("orphan", "s"))
					w.pass(10 * time.Minute)
					for _, call := range b.Calls()[pods:] {
						if call != "delete d/orphan" {
							wrong++
							w.Errorf("call %q because of a list", call)
						}
					}
					b.Heal()
					slowest = max(slowest, w.until("the orphan is gone", 2*time.Minute, func() bool { return b.Has("d/orphan") == nil }))
					w.pass(time.Minute)
					if len(b.Calls()) != pods+1 || !w.allRun("p", pods) {
						w.Errorf("calls are %q, want one delete after the creates", b.Calls()[pods:])
					}
				}, configs...)
			})
		}
	}
	faultrow.Record(t, 36, "10 minutes each of lists that fail, are empty, partial, stale or have another node's pods, also with GetPod failing or hanging, for 20 pods, reported and polled",
		"%d wrongful calls in 14 scenarios; a pod that really was unwanted was gone at most %v after lists were right", wrong, slowest)
}

// TestFault37SecondInstanceIsRemoved: a second pod is removed under any name. A second instance of a wanted pod is only reported, and pods
// of other nodes are left alone.
func TestFault37SecondInstanceIsRemoved(t *testing.T) {
	slowest := time.Duration(0)
	for name, extra := range map[string]*corev1.Pod{
		"same name, same UID":     bound("p", "a"),
		"same name, another UID":  bound("p", "x"),
		"another name, same UID":  bound("q", "a"),
		"another name and UID":    bound("q", "x"),
		"same name as none other": bound("p", ""),
	} {
		for _, polled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, polled=%v", name, polled), func(t *testing.T) {
				b := memory.New()
				configs := []func(*PodControllerConfig){onNode}
				if polled {
					configs = append(configs, silent)
				}
				inWorld(t, b, func(w *world) {
					theirs := bound("theirs", "t")
					theirs.Spec.NodeName = "m"
					b.Foreign(theirs)
					w.start()
					w.api.Create(bound("p", "a"))
					w.pass(time.Minute + time.Second)
					own := b.Instances("a")
					b.Extra(extra)
					if extra.UID == "" { // indistinguishable from the pod itself: nothing is touched
						w.pass(10 * time.Minute)
						wantCalls(t, b, "create d/p")
						return
					}
					if extra.Name == "p" && extra.UID == "a" { // the node cannot decide which of the two to keep
						w.but = []string{"S1"}
						w.pass(30 * time.Second)
						if e := strings.Join(w.events(), "\n"); !strings.Contains(e, eventSecondPod) {
							w.Errorf("events are %q, want %s", e, eventSecondPod)
						}
						w.pass(10 * time.Minute)
						wantCalls(t, b, "create d/p")
						return
					}
					slowest = max(slowest, w.until("the extra instance is gone", 30*time.Second, func() bool { return b.Len() == 2 }))
					w.pass(10 * time.Minute)
					if got := b.Instances("a"); len(got) != 1 || got[0] != own[0] {
						w.Errorf("instances of the pod are %q, want %q", got, own)
					}
					if got := b.Instances("t"); len(got) != 1 {
						w.Error("a pod that is not ours is gone")
					}
					wantCalls(t, b, "create d/p", "delete d/"+extra.Name)
					w.wantPhase("p", corev1.PodRunning)
				}, configs...)
			})
		}
	}
	faultrow.Record(t, 37, "an extra instance of the same and of another UID, under the same and under another name, reported and polled, beside one of another node",
		"a second instance of the wanted pod was told within 30 s, each other was removed within %v, with one DeletePod, and the pod's own and the foreign one were left alone", slowest)
}

func TestFault43PodRemovedBehindOurBack(t *testing.T) {
	detected := time.Duration(0)
	for _, tt := range []struct {
		policy corev1.RestartPolicy
		calls  []string
		phase  corev1.PodPhase
	}{
		{corev1.RestartPolicyAlways, []string{"create d/p", "create d/p"}, corev1.PodRunning},
		{corev1.RestartPolicyOnFailure, []string{"create d/p", "create d/p"}, corev1.PodRunning},
		{corev1.RestartPolicyNever, []string{"create d/p", "delete d/p"}, corev1.PodFailed},
	} {
		for _, polled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, polled=%v", tt.policy, polled), func(t *testing.T) {
				b := memory.New()
				configs := []func(*PodControllerConfig){onNode}
				if polled {
					configs = append(configs, silent)
				}
				inWorld(t, b, func(w *world) {
					w.start()
					p := bound("p", "a")
					p.Spec.RestartPolicy = tt.policy
					w.api.Create(p)
					w.pass(time.Minute + time.Second)
					w.events()
					b.Lose("d/p")
					var told []string
					took := w.until("an event tells", 30*time.Second, func() bool {
						told = append(told, w.events()...)
						return strings.Contains(strings.Join(told, "\n"), eventPodLost)
					})
					detected = max(detected, took)
					w.pass(10 * time.Minute)
					wantCalls(t, b, tt.calls...)
					w.wantPhase("p", tt.phase)
				}, configs...)
			})
		}
	}
	faultrow.Record(t, 43, "the instance of a running pod removed out of band, for each restart policy, reported and polled",
		"detected and told by an event within %v; created again once, or Failed for Never", detected)
}

func TestFault44LossyCopiesCostNoUpdates(t *testing.T) {
	const pods, restarts = 10, 2
	updates, writes := 0, 0
	for name, lossy := range map[string]func(*corev1.Pod){
		"drops labels":           memory.DropLabels,
		"rewrites images":        memory.RewriteImages("docker.io/library/"),
		"pulls through a mirror": memory.RewriteImages("mirror.local/cache/"),
		"drops the UID":          func(p *corev1.Pod) { p.UID = "" },
		"drops the spec":         func(p *corev1.Pod) { p.Spec = corev1.PodSpec{} },
		"drops the generation":   func(p *corev1.Pod) { p.Generation = 0 },
		"adds a container":       func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "pause"}) },
	} {
		for _, polled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, polled=%v", name, polled), func(t *testing.T) {
				b := memory.New()
				b.Lossy = lossy
				var configs []func(*PodControllerConfig)
				if polled {
					configs = append(configs, silent)
				}
				inWorld(t, b, func(w *world) {
					w.start()
					for i := range pods {
						p := bound(fmt.Sprint("p", i), "")
						p.Labels = map[string]string{"app": "x", "tier": "y"}
						w.api.Create(p)
					}
					w.pass(3 * time.Minute)
					calls, before := len(b.Calls()), len(w.api.Writes(""))
					for range restarts {
						w.halt()
						w.start()
						w.pass(3 * time.Minute)
					}
					more := b.Calls()[calls:]
					updates, writes = updates+len(more), writes+len(w.api.Writes(""))-before
					if len(more) != 0 || len(w.api.Writes("")) != before {
						w.Errorf("%d calls and %d writes after %d restarts, want none: %.5q", len(more), len(w.api.Writes(""))-before, restarts, more)
					}
					w.api.Change("d", "p0", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "j" })
					w.pass(time.Minute)
					w.api.Change("d", "p1", func(p *corev1.Pod) { p.Labels["app"] = "z" })
					w.pass(time.Minute)
					if got := b.Count("update d/p0") + b.Count("update d/p1"); got != 2 || len(b.Calls()) != calls+2 {
						w.Errorf("calls after two changes are %q, want an update for each", b.Calls()[calls:])
					}
				}, configs...)
			})
		}
	}
	faultrow.Record(t, 44, "backends that drop labels, UID, spec or generation, name images in their own way or add containers; 10 pods, 2 restarts each",
		"%d calls and %d writes in 42 restarts; one UpdatePod for each change of generation or labels", updates, writes)
}

// TestListsThatFailAreTriedLater holds this although a missing pod requests a list at once.
func TestListsThatFailAreTriedLater(t *testing.T) {
	for _, polled := range []bool{false, true} {
		t.Run(fmt.Sprintf("polled=%v", polled), func(t *testing.T) {
			b := memory.New()
			configs := []func(*PodControllerConfig){onNode}
			if polled {
				configs = append(configs, silent)
			}
			inWorld(t, b, func(w *world) {
				w.start()
				w.create("p", 3, time.Second)
				w.pass(time.Minute)
				var lists atomic.Int32
				b.Script(func(_ context.Context, method, _ string) error {
					if method == memory.List && lists.Add(1) < 1000 { // the bubble ends even if the lists never end
						return memory.ErrUnwell
					}
					return nil
				})
				b.Lose("d/p1")
				w.pass(2 * time.Minute)
				if n := lists.Load(); n < 10 || n > 25 {
					w.Errorf("%d lists within 2 minutes of failures, want one every 8 seconds", n)
				}
				b.Script(nil)
				w.until("the pod runs again", 30*time.Second, func() bool { return b.Has("d/p1") != nil })
			}, configs...)
		})
	}
}
