// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

var policies = map[string]Again{"another": AgainMakesAnother, "replaces": AgainReplaces, "first": AgainReturnsFirst}

// TestOneInstanceWhateverAnswersAreLost: the node retries a create until it succeeds, and the pod has exactly
// one instance. A retry does not change the first instance if the service shows this instance.
func TestOneInstanceWhateverAnswersAreLost(t *testing.T) {
	type fault = func(*cloud, *Inputs) (vm, error)
	for kind, again := range policies {
		for name, faults := range map[string][]fault{
			"none": nil, "before": {before}, "after": {after}, "late": {late}, "slow": {slow}, "refused after an answer was lost": {after, refuse},
			"invalid after an answer was lost": {after, invalid}, "refused": {refuse}, "before, twice": {before, before}, "before and after": {before, after},
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				bubble(t, again, func(t *testing.T, h *home) {
					p, _ := h.start(nil)
					h.cloud.edit(func() { h.cloud.faults = faults })
					pod := h.pod("web")
					h.create(p, pod)
					time.Sleep(3 * time.Minute)
					if made, there := h.cloud.count(); made != 1 || there != 1 {
						t.Errorf("%d instances were made, and %d are there", made, there)
					}
					if got, err := p.GetPods(t.Context()); err != nil || len(got) != 1 {
						t.Errorf("got %v, %v", got, err)
					}
					h.delete(p, pod)
					if _, there := h.cloud.count(); there != 0 {
						t.Errorf("%d instances are left", there)
					}
				})
			})
		}
	}
}

// TestRestartIsALostAnswer: the process ends in the middle of a create. The next process has exactly one
// instance of the pod, although lists lag. It does not search for pods that are newer than the process itself.
func TestRestartIsALostAnswer(t *testing.T) {
	for kind, again := range policies {
		t.Run(kind, func(t *testing.T) {
			bubble(t, again, func(t *testing.T, h *home) {
				p, stop := h.start(nil)
				h.cloud.edit(func() { h.cloud.faults = append(h.cloud.faults, after) })
				pod := h.pod("web")
				if err := p.CreatePod(t.Context(), pod.DeepCopy()); err == nil {
					t.Fatal("the answer was not lost")
				}
				stop()
				p, _ = h.start(nil)
				h.create(p, pod)
				time.Sleep(3 * time.Minute)
				if made, there := h.cloud.count(); made != 1 || there != 1 {
					t.Errorf("%d instances were made, and %d are there", made, there)
				}
				var finds int
				h.delete(p, pod)
				if err := p.DeletePod(t.Context(), pod.DeepCopy()); !errdefs.IsNotFound(err) {
					t.Errorf("delete of a pod that is gone: got %v", err)
				}
				finds = h.cloud.number(&h.cloud.finds)
				h.create(p, h.pod("other"))
				if h.cloud.number(&h.cloud.finds) != finds {
					t.Error("the service was asked for a pod that is newer than the process")
				}
			})
		})
	}
}

// TestPodOfAnEarlierProcessIsMadeOnceItCannotAppear: a pod from before a restart has no instance. The provider
// makes one, as soon as an instance of the earlier process can no longer appear.
func TestPodOfAnEarlierProcessIsMadeOnceItCannotAppear(t *testing.T) {
	for kind, c := range map[string]struct {
		again  Again
		within time.Duration
	}{"another": {AgainMakesAnother, 35 * time.Second}, "replaces": {AgainReplaces, 0}, "first": {AgainReturnsFirst, 0}} {
		t.Run(kind, func(t *testing.T) {
			bubble(t, c.again, func(t *testing.T, h *home) {
				pod := h.pod("web")
				p, _ := h.start(nil, func(c *Config) { c.EarlierWithin = 30 * time.Second })
				begun := time.Now()
				h.create(p, pod)
				if took := time.Since(begun); took > c.within || c.within > 0 && took < 30*time.Second {
					t.Errorf("made after %s", took)
				}
			})
		})
	}
}

// TestServiceThatMakesAnotherIsNotAskedInDoubt: after a create without an answer, the provider only searches for
// the instance. The second create runs when the service's time is over.
func TestServiceThatMakesAnotherIsNotAskedInDoubt(t *testing.T) {
	bubble(t, AgainMakesAnother, func(t *testing.T, h *home) {
		p, _ := h.start(nil)
		h.cloud.edit(func() { h.cloud.faults = append(h.cloud.faults, before) })
		pod := h.pod("web")
		begun := time.Now()
		h.create(p, pod)
		if took := time.Since(begun); took < time.Minute || took > 70*time.Second {
			t.Errorf("made after %s", took)
		}
		if h.cloud.number(&h.cloud.creates) != 2 {
			t.Errorf("%d creates", h.cloud.number(&h.cloud.creates))
		}
	})
}

// TestRefusedCreateLeavesNothingPending: after a refused create, a delete returns NotFound, and the next create
// runs at once.
func TestRefusedCreateLeavesNothingPending(t *testing.T) {
	for kind, again := range policies {
		t.Run(kind, func(t *testing.T) {
			bubble(t, again, func(t *testing.T, h *home) {
				p, _ := h.start(nil)
				time.Sleep(2 * time.Minute)
				h.cloud.edit(func() { h.cloud.faults = append(h.cloud.faults, invalid, refuse) })
				pod := h.pod("web")
				if err := p.CreatePod(t.Context(), pod.DeepCopy()); !errdefs.IsInvalidInput(err) {
					t.Errorf("got %v", err)
				}
				if err := p.DeletePod(t.Context(), pod.DeepCopy()); !errdefs.IsNotFound(err) {
					t.Errorf("delete: got %v", err)
				}
				if err := p.CreatePod(t.Context(), pod.DeepCopy()); err == nil || errdefs.IsInvalidInput(err) {
					t.Errorf("got %v", err)
				}
				if err := p.CreatePod(t.Context(), pod.DeepCopy()); err != nil || h.cloud.number(&h.cloud.finds) != 0 {
					t.Errorf("got %v after %d questions", err, h.cloud.number(&h.cloud.finds))
				}
			})
		})
	}
}

// TestRefusalAfterALostAnswerFailsNoPod: the first create may have made an instance. So a later refusal is not
// InvalidInput, and a delete does not return NotFound.
func TestRefusalAfterALostAnswerFailsNoPod(t *testing.T) {
	for kind, again := range policies {
		t.Run(kind, func(t *testing.T) {
			bubble(t, again, func(t *testing.T, h *home) {
				p, _ := h.start(nil)
				h.cloud.edit(func() { h.cloud.faults = append(h.cloud.faults, after, invalid, invalid, invalid) })
				pod := h.pod("web")
				for range 2 {
					if err := p.CreatePod(t.Context(), pod.DeepCopy()); err == nil || errdefs.IsInvalidInput(err) {
						t.Errorf("got %v", err)
					}
				}
				if err := p.DeletePod(t.Context(), pod.DeepCopy()); err == nil || errdefs.IsNotFound(err) {
					t.Errorf("delete: got %v", err)
				}
				h.delete(p, pod)
				if _, there := h.cloud.count(); there != 0 {
					t.Errorf("%d instances are left", there)
				}
			})
		})
	}
}

// TestPodOfAnEarlierProcessThatIsGoneIsNotWaitedFor: the instance of an earlier process was found and has
// stopped, so a delete does not wait for another one.
func TestPodOfAnEarlierProcessThatIsGoneIsNotWaitedFor(t *testing.T) {
	bubble(t, AgainMakesAnother, func(t *testing.T, h *home) {
		p, stop := h.start(nil)
		pod := h.pod("web")
		h.create(p, pod)
		stop()
		p, _ = h.start(nil, func(c *Config) { c.EarlierWithin = 10 * time.Minute })
		h.create(p, pod)
		begun := time.Now()
		h.delete(p, pod)
		if err := p.DeletePod(t.Context(), pod.DeepCopy()); !errdefs.IsNotFound(err) || time.Since(begun) > 20*time.Second {
			t.Errorf("after %s got %v", time.Since(begun), err)
		}
	})
}

// TestPodThatAsksForMoreThanIsDeclaredIsRefused: the error names the field, and the service gets no request.
func TestPodThatAsksForMoreThanIsDeclaredIsRefused(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		p, _ := h.start(nil, func(c *Config) { c.Capabilities = capability.Only() })
		pod := h.pod("web")
		pod.Spec.HostNetwork = true
		if err := p.CreatePod(t.Context(), pod); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "spec.hostNetwork") || h.cloud.number(&h.cloud.creates) != 0 {
			t.Errorf("got %v after %d creates", err, h.cloud.number(&h.cloud.creates))
		}
	})
}

// TestNothingIsAskedBeforeThePodsAreKnown: the provider sends no request before it knows the pods of the
// cluster, and no create before it knows the instances from before a restart.
func TestNothingIsAskedBeforeThePodsAreKnown(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		var listed atomic.Bool
		h.cloud.edit(func() { h.cloud.dark = true })
		p, _ := h.start(nil, func(c *Config) { c.Listed = listed.Load })
		time.Sleep(time.Minute)
		if h.cloud.number(&h.cloud.lists) != 0 {
			t.Errorf("%d lists before the pods of the cluster were known", h.cloud.number(&h.cloud.lists))
		}
		listed.Store(true)
		pod := h.pod("web")
		if err := p.CreatePod(t.Context(), pod.DeepCopy()); err == nil || !strings.Contains(err.Error(), errLost.Error()) || h.cloud.number(&h.cloud.creates) != 0 {
			t.Errorf("while the first list fails: got %v after %d creates", err, h.cloud.number(&h.cloud.creates))
		}
		if _, err := p.GetPods(t.Context()); err == nil || p.AnswersForAllPods() || p.Ping(t.Context()) == nil {
			t.Errorf("GetPods: got %v", err)
		}
		h.cloud.edit(func() { h.cloud.dark = false })
		h.create(p, pod)
	})
}

// strict is a driver that refuses every pod.
type strict struct{ *cloud }

func (strict) Refuse(*corev1.Pod) error { return errdefs.InvalidInput("spec: is refused") }

// TestRefusedPodIsNotRead: a pod that the driver refuses fails at once; it does not wait for missing objects.
func TestRefusedPodIsNotRead(t *testing.T) {
	c := &cloud{}
	err := New[vm](Config{Service: "cloud"}, strict{c}).CreatePod(t.Context(), &corev1.Pod{})
	if !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "spec: is refused") || c.creates > 0 {
		t.Errorf("got %v after %d creates, want the refusal", err, c.creates)
	}
}

// TestServiceSaysWhenToAskAgainInDoubt: after a create without an answer, the service throttles the retry. The
// error carries the service's waiting time.
func TestServiceSaysWhenToAskAgainInDoubt(t *testing.T) {
	for _, again := range []Again{AgainReplaces, AgainReturnsFirst} {
		t.Run(fmt.Sprint(again), func(t *testing.T) {
			bubble(t, again, func(t *testing.T, h *home) {
				p, _ := h.start(nil)
				pod := h.pod("web")
				h.cloud.faults = append(h.cloud.faults, before, func(*cloud, *Inputs) (vm, error) {
					return vm{}, NotMade(errdefs.RetryAfter(errors.New("too many requests"), time.Minute))
				})
				if err := p.CreatePod(t.Context(), pod.DeepCopy()); err == nil {
					t.Fatal("the answer was not lost")
				}
				err := p.CreatePod(t.Context(), pod.DeepCopy())
				if after, _ := errdefs.RetryAfterOf(err); after != time.Minute {
					t.Errorf("got %v, to try again after %s", err, after)
				}
			})
		})
	}
}

// TestAlreadyMadeIsFound: the service answers that the token of an earlier create is in use with another
// request. The pod gets the instance of this create as soon as the service shows it.
func TestAlreadyMadeIsFound(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		p, _ := h.start(nil)
		h.cloud.edit(func() { h.cloud.faults = append(h.cloud.faults, after, already, already) })
		pod := h.pod("web")
		_ = p.CreatePod(t.Context(), pod.DeepCopy())
		if err := p.CreatePod(t.Context(), pod.DeepCopy()); err == nil || errdefs.IsInvalidInput(err) || errdefs.IsNotFound(err) {
			t.Errorf("the service does not show it yet: got %v", err)
		}
		time.Sleep(lag)
		if err := p.CreatePod(t.Context(), pod.DeepCopy()); err != nil {
			t.Errorf("got %v", err)
		}
		if made, there := h.cloud.count(); made != 1 || there != 1 {
			t.Errorf("%d were made, %d are there", made, there)
		}
	})
}

// TestAlreadyMadeIsNotMissing: an earlier process made the instance, and the service does not show it yet. A
// delete of the pod does not return NotFound.
func TestAlreadyMadeIsNotMissing(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		p, stop := h.start(nil)
		pod := h.pod("web")
		h.create(p, pod)
		stop()
		p, _ = h.start(nil, func(c *Config) { c.EarlierWithin = -1 })
		h.cloud.edit(func() { h.cloud.faults = append(h.cloud.faults, already) })
		if err := p.CreatePod(t.Context(), pod.DeepCopy()); err == nil {
			t.Fatal("the service shows it, so this proves nothing")
		}
		if err := p.DeletePod(t.Context(), pod.DeepCopy()); err == nil || errdefs.IsNotFound(err) {
			t.Errorf("got %v", err)
		}
		h.delete(p, pod)
		if _, there := h.cloud.count(); there != 0 {
			t.Errorf("%d instances are left", there)
		}
	})
}

// TestDeleteWhileTheAnswerIsLostWaits: after a create without an answer, a delete waits until no instance of the
// pod can appear. An instance that appears later would have no pod.
func TestDeleteWhileTheAnswerIsLostWaits(t *testing.T) {
	for kind, again := range policies {
		for name, fault := range map[string]func(*cloud, *Inputs) (vm, error){"before": before, "after": after, "late": late} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				bubble(t, again, func(t *testing.T, h *home) {
					p, _ := h.start(nil)
					time.Sleep(2 * time.Minute)
					h.cloud.edit(func() { h.cloud.faults = append(h.cloud.faults, fault) })
					pod := h.pod("web")
					if err := p.CreatePod(t.Context(), pod.DeepCopy()); err == nil {
						t.Fatal("the answer was not lost")
					}
					h.cloud.edit(func() { h.cloud.dark = true })
					if err := p.DeletePod(t.Context(), pod.DeepCopy()); err == nil || errdefs.IsNotFound(err) {
						t.Errorf("while the service is dark: got %v", err)
					}
					h.cloud.edit(func() { h.cloud.dark = false })
					h.delete(p, pod)
					if _, there := h.cloud.count(); there != 0 {
						t.Errorf("%d instances are left", there)
					}
				})
			})
		}
	}
}

// TestErrorsQuoteNoSecret: values of the pod's Secrets are removed from errors. Values in the spec stay.
func TestErrorsQuoteNoSecret(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		p, _ := h.start(nil)
		h.cloud.faults = append(h.cloud.faults, func(_ *cloud, in *Inputs) (vm, error) {
			in.Hide("of the driver")
			return vm{}, errdefs.InvalidInputf("bad: %s, plain words, of the driver", in.Containers["main"].Env[0].Value)
		})
		pod := h.pod("web")
		pod.Spec.Containers[0].Env = secretEnv()
		err := p.CreatePod(t.Context(), pod)
		if !errdefs.IsInvalidInput(err) || strings.Contains(err.Error(), "a secret value") || strings.Contains(err.Error(), "of the driver") || !strings.Contains(err.Error(), "plain words") {
			t.Errorf("got %v", err)
		}
	})
}

// TestWhatMayAppearIsAskedForLessAndLessOften: a delete after a create without an answer waits for the service's
// whole time, and sends few requests.
func TestWhatMayAppearIsAskedForLessAndLessOften(t *testing.T) {
	for kind, again := range policies {
		t.Run(kind, func(t *testing.T) {
			bubble(t, again, func(t *testing.T, h *home) {
				p, _ := h.start(nil)
				h.cloud.edit(func() { h.cloud.faults = append(h.cloud.faults, before) })
				pod := h.pod("web")
				if err := p.CreatePod(t.Context(), pod.DeepCopy()); err == nil {
					t.Fatal("the answer was not lost")
				}
				begun := time.Now()
				h.delete(p, pod)
				if took := time.Since(begun); took != time.Minute || h.cloud.number(&h.cloud.finds) < 5 || h.cloud.number(&h.cloud.finds) > 12 {
					t.Errorf("the delete ended after %s and %d questions, want a minute and 5 to 12", took, h.cloud.number(&h.cloud.finds))
				}
			})
		})
	}
}
