// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// nodeConditions stores the conditions that the controller sets.
type nodeConditions struct {
	mu   sync.Mutex
	told []corev1.NodeCondition // guarded by mu
}

func (n *nodeConditions) configure(cfg *PodControllerConfig) {
	cfg.SetNodeCondition = func(c corev1.NodeCondition) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.told = append(n.told, c)
	}
}

// statuses returns the status of each condition that was set, and the last message.
func (n *nodeConditions) statuses() (statuses, message string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.told {
		statuses += string(c.Status) + " "
		message = c.Message
	}
	return strings.TrimSpace(statuses), message
}

// runWith creates n pods with a restart policy.
func (w *world) runWith(prefix string, n int, policy corev1.RestartPolicy) {
	w.Helper()
	for i := range n {
		p := bound(fmt.Sprint(prefix, i), "")
		p.Spec.RestartPolicy = policy
		w.api.Create(p)
	}
	w.pass(2 * time.Minute)
}

// phases returns the number of pods in the API server by phase.
func (w *world) phases(prefix string, n int) map[corev1.PodPhase]int {
	got := map[corev1.PodPhase]int{}
	for i := range n {
		got[w.phase(fmt.Sprint(prefix, i))]++
	}
	return got
}

// TestFault53EmptyListsAndErrorsDestroyNothing: GetPods is empty without an error while GetPod fails with an error without a kind.
func TestFault53EmptyListsAndErrorsDestroyNothing(t *testing.T) {
	const silence = 2 * time.Minute
	calls, changed := 0, 0
	for _, pods := range []int{1, 3, 30} {
		for _, polled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d pods, polled=%v", pods, polled), func(t *testing.T) {
				b := memory.New()
				configs := []func(*PodControllerConfig){onNode}
				if polled {
					configs = append(configs, silent)
				}
				inWorld(t, b, func(w *world) {
					w.start()
					w.runWith("never", pods, corev1.RestartPolicyNever)
					w.runWith("always", pods, corev1.RestartPolicyAlways)
					before := len(b.Calls())
					b.Lie(memory.Lie{Empty: true})
					b.Inject(memory.Fault{Method: memory.Get, Err: errors.New("connection refused")})
					b.Inject(memory.Fault{Method: memory.Status, Err: errors.New("connection refused")})
					w.pass(silence)
					calls += len(b.Calls()) - before
					for _, prefix := range []string{"never", "always"} {
						if got := w.phases(prefix, pods)[corev1.PodRunning]; got != pods {
							changed += pods - got
							w.Errorf("%d of %d pods %s are Running after the silence", got, pods, prefix)
						}
					}
					b.Heal()
					w.pass(10 * time.Minute)
					if more := b.Calls()[before:]; len(more) > 0 {
						w.Errorf("calls because of the silence: %q", more)
					}
				}, configs...)
			})
		}
	}
	faultrow.Record(t, 53, fmt.Sprintf("GetPods empty, GetPod and GetPodStatus with an error without a kind, for %v; 1, 3 and 30 pods each of Never and Always, reported and polled", silence),
		"%d calls of DeletePod and CreatePod, %d pods changed their phase", calls, changed)
}

// TestPlainErrorsOfAPodThatIsGoneAreBelievedInTheEnd: many providers return an error without a kind for a pod that they do not have.
func TestPlainErrorsOfAPodThatIsGoneAreBelievedInTheEnd(t *testing.T) {
	for name, others := range map[string]int{"the list is empty": 0, "the list has others": 3} {
		t.Run(name, func(t *testing.T) {
			b := memory.New()
			inWorld(t, b, func(w *world) {
				b.Script(func(_ context.Context, method, key string) error {
					if (method == memory.Get || method == memory.Status) && b.Has(key) == nil {
						return errors.New("unknown instance")
					}
					return nil
				})
				w.start()
				w.runWith("p", 1+others, corev1.RestartPolicyNever)
				b.Lose("d/p0")
				limit := 30 * time.Second
				if others == 0 {
					w.pass(4 * time.Minute)
					w.wantPhase("p0", corev1.PodRunning)
					limit = 2 * time.Minute
				}
				w.until("p0 has failed", limit, func() bool { return w.phase("p0") == corev1.PodFailed })
				if got := w.phases("p", 1+others); got[corev1.PodRunning] != others {
					w.Errorf("phases are %v, want %d Running", got, others)
				}
				b.Script(nil)
			}, onNode)
		})
	}
}

// unfilled is the script of a backend whose cache is not filled yet, so that it has no pods.
func unfilled(b *memory.Backend) {
	b.Lie(memory.Lie{Empty: true})
	for _, method := range []string{memory.Get, memory.Status, memory.Update, memory.Delete} {
		b.Inject(memory.Fault{Method: method, Err: errdefs.NotFound("no such pod")})
	}
}

// TestFault54BackendWhoseCacheIsNotFilledLosesNothing: after a restart of the daemon the backend returns no pods for a while, and then all
// of them.
func TestFault54BackendWhoseCacheIsNotFilledLosesNothing(t *testing.T) {
	const dark = 20 * time.Second
	calls, changed, cases := 0, 0, 0
	for _, pods := range []int{2, 30} {
		for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyAlways} {
			for _, polled := range []bool{false, true} {
				for _, restart := range []bool{true, false} {
					cases++
					t.Run(fmt.Sprintf("%d pods %s, polled=%v, restart=%v", pods, policy, polled, restart), func(t *testing.T) {
						b, seen := memory.New(), &nodeConditions{}
						configs := []func(*PodControllerConfig){onNode, seen.configure}
						if polled {
							configs = append(configs, silent)
						}
						inWorld(t, b, func(w *world) {
							w.start()
							w.runWith("p", pods, policy)
							if restart {
								w.halt()
							}
							before, events := len(b.Calls()), len(w.events())
							unfilled(b)
							if restart {
								w.start()
							}
							w.pass(dark)
							b.Heal()
							told := strings.Join(w.events(), "\n")
							w.pass(6 * time.Minute)
							calls += len(b.Calls()) - before
							if more := b.Calls()[before:]; len(more) > 0 {
								w.Errorf("calls because of the silence: %q", more)
							}
							if got := w.phases("p", pods)[corev1.PodRunning]; got != pods {
								changed += pods - got
								w.Errorf("%d of %d pods are Running", got, pods)
							}
							if got, message := seen.statuses(); got != "True False" {
								w.Errorf("the condition of the node was %q (%s), want True False", got, message)
							}
							if n := strings.Count(told, eventPodsMissing); n != 1 {
								w.Errorf("%d events of missing pods after %d others, want one: %s", n, events, told)
							}
							if got := metric(w, "virtual_kubelet_missing_pods_quarantined"); got != 0 {
								w.Errorf("%v pods are in quarantine in the end", got)
							}
						}, configs...)
					})
				}
			}
		}
	}
	faultrow.Record(t, 54, fmt.Sprintf("NotFound and empty lists for %v after a restart of the daemon, and without one; 2 and 30 pods, Never and Always, reported and polled", dark),
		"%d calls of DeletePod and CreatePod and %d pods Failed in %d cases; the node's condition PodsMissing was True meanwhile, with one event", calls, changed, cases)
}

// TestManyPodsThatAreReallyGoneAreGivenUp: the quarantine ends after complete lists have lacked the pods for its whole period. A failed
// list, or a pod that reappears, restarts the period.
func TestManyPodsThatAreReallyGoneAreGivenUp(t *testing.T) {
	for name, disturb := range map[string]func(w *world){
		"undisturbed": nil,
		"a list failed": func(w *world) {
			w.backend.Inject(memory.Fault{Method: memory.List, Times: 1, Err: memory.ErrUnwell})
			w.pass(20 * time.Second)
		},
		"a pod shows again": func(w *world) {
			p := w.api.Pod("d", "p7")
			w.backend.Extra(p)
			w.pass(20 * time.Second)
			w.but = append(w.but, "S1") // it was started out of band
		},
	} {
		t.Run(name, func(t *testing.T) {
			const pods = 40
			b := memory.New()
			inWorld(t, b, func(w *world) {
				w.start()
				w.runWith("p", pods, corev1.RestartPolicyNever)
				for i := range 30 {
					b.Lose(fmt.Sprint("d/p", i))
				}
				w.pass(4 * time.Minute)
				if got := w.phases("p", pods)[corev1.PodRunning]; got != pods {
					w.Fatalf("%d of %d pods are Running while it is in doubt", got, pods)
				}
				begin := time.Now()
				if disturb != nil {
					disturb(w)
				}
				w.until("lost pods are given up", 10*time.Minute, func() bool { return w.phases("p", pods)[corev1.PodFailed] >= 29 })
				if took := time.Since(begin); disturb != nil && took < 4*time.Minute || disturb == nil && took > 2*time.Minute {
					w.Errorf("given up %v after the first four minutes", took)
				}
				w.pass(10 * time.Minute)
				if got := w.phases("p", pods)[corev1.PodRunning]; got > 11 || got < 10 {
					w.Errorf("%d pods are Running in the end", got)
				}
			}, onNode)
		})
	}
}

// TestFailedListLetsADoubtfulPodWaitAnew: a failed list restarts the time after which a missing pod counts
// as lost.
func TestFailedListLetsADoubtfulPodWaitAnew(t *testing.T) {
	b := memory.New()
	b.PlainErrors = true
	inWorld(t, b, func(w *world) {
		w.start()
		w.runWith("p", 1, corev1.RestartPolicyNever)
		b.Lose("d/p0")
		w.pass(4 * time.Minute)
		b.Inject(memory.Fault{Method: memory.List, Err: memory.ErrUnwell})
		w.pass(time.Minute)
		b.Heal()
		w.pass(4 * time.Minute)
		w.wantPhase("p0", corev1.PodRunning)
		w.until("the pod has failed", 2*time.Minute, func() bool { return w.phase("p0") == corev1.PodFailed })
	}, onNode)
}

// TestQuarantineCanBeSet holds that the configuration overrides the default period.
func TestQuarantineCanBeSet(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.runWith("p", 20, corev1.RestartPolicyNever)
		for i := range 20 {
			b.Lose(fmt.Sprint("d/p", i))
		}
		w.pass(50 * time.Second)
		if got := w.phases("p", 20)[corev1.PodRunning]; got != 20 {
			w.Errorf("%d of 20 pods are Running before the quarantine ends", got)
		}
		w.until("they are given up", 2*time.Minute, func() bool { return w.phases("p", 20)[corev1.PodFailed] == 20 })
	}, onNode, func(cfg *PodControllerConfig) { cfg.MissingPodsQuarantine = time.Minute })
}

// TestDeletionInDoubtIsNotConfirmedByNotFound: if a backend lacks most of its pods, its not-found for a deleted pod is as doubtful as for
// the others.
func TestDeletionInDoubtIsNotConfirmedByNotFound(t *testing.T) {
	const pods = 20
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.runWith("p", pods, corev1.RestartPolicyAlways)
		w.halt()
		unfilled(b)
		w.start()
		w.pass(5 * time.Second)
		w.api.Delete("d", "p0", 1)
		w.pass(30 * time.Second)
		if w.api.Pod("d", "p0") == nil {
			w.Error("the pod is gone from the API server while its instance runs")
		}
		b.Heal()
		w.until("the pod is gone on both sides", time.Minute, func() bool { return w.api.Pod("d", "p0") == nil && b.Has("d/p0") == nil })
	}, onNode)
}

// TestFault55PodThatShowsLateIsNotLost: the backend shows a new pod only after a minute.
func TestFault55PodThatShowsLateIsNotLost(t *testing.T) {
	const late = time.Minute
	worst := 0
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyAlways} {
		for _, plain := range []bool{false, true} {
			for _, others := range []int{0, 3} {
				t.Run(fmt.Sprintf("%s, plain errors=%v, %d others", policy, plain, others), func(t *testing.T) {
					b := memory.New()
					b.PlainErrors, b.ShowsAfter, b.SaysPending = plain, late, true
					inWorld(t, b, func(w *world) {
						w.start()
						w.runWith("other", others, corev1.RestartPolicyAlways)
						p := bound("p", "a")
						p.Spec.RestartPolicy = policy
						w.api.Create(p)
						w.until("the pod is Running", late+5*time.Second, func() bool { return w.phase("p") == corev1.PodRunning })
						w.pass(10 * time.Minute)
						worst = max(worst, b.Count("create d/p"))
						if n := len(b.Calls()); n != others+1 {
							w.Errorf("calls are %q, want one create for each pod", b.Calls())
						}
					}, onNode)
				})
			}
		}
	}
	faultrow.Record(t, 55, fmt.Sprintf("a new pod is in no answer for %v; the provider has reported it as Pending; Never and Always, NotFound and errors without a kind", late),
		"%d CreatePod for the pod, Failed 0", worst)
}

// TestFault57FinishedPodBesideItsSuccessor: the backend keeps ended pods forever.
func TestFault57FinishedPodBesideItsSuccessor(t *testing.T) {
	most := 0
	for _, endedFirst := range []bool{false, true} {
		for _, polled := range []bool{false, true} {
			for _, restart := range []bool{false, true} {
				t.Run(fmt.Sprintf("ended first=%v, polled=%v, restart=%v", endedFirst, polled, restart), func(t *testing.T) {
					b := memory.New()
					b.KeepsEnded, b.EndedFirst = true, endedFirst
					configs := []func(*PodControllerConfig){onNode}
					if polled {
						configs = append(configs, silent)
					}
					inWorld(t, b, func(w *world) {
						w.start()
						p := bound("p", "old")
						p.Spec.RestartPolicy = corev1.RestartPolicyNever
						w.api.Create(p)
						w.pass(10 * time.Second)
						b.Change("d/p", func(p *corev1.Pod) { *p = *memory.Ended(p, 0) })
						w.pass(10 * time.Second)
						w.api.Delete("d", "p", 0)
						w.pass(10 * time.Second)
						w.api.Create(bound("p", "new"))
						w.pass(time.Minute)
						if restart {
							w.halt()
							w.start()
						}
						w.pass(time.Hour)
						w.wantPhase("p", corev1.PodRunning)
						if got := b.Instances("new"); len(got) != 1 {
							w.Errorf("instances of the successor are %q, want one", got)
						}
						most = max(most, b.Count("delete d/p"))
						if n := b.Count("delete d/p"); n > 1 {
							w.Errorf("%d DeletePods, want at most one: %q", n, b.Calls())
						}
					}, configs...)
				})
			}
		}
	}
	faultrow.Record(t, 57, "a finished pod that the backend keeps beside the successor of its name, which GetPod may return for it, for 1 h; reported and polled, also with a restart",
		"%d DeletePod for the old UID, the successor untouched", most)
}

// TestVisibilityTimeoutIsOfTheContract: if the provider reports nothing, a new pod is lost when the backend has not shown it for the
// configured time.
func TestVisibilityTimeoutIsOfTheContract(t *testing.T) {
	for _, timeout := range []time.Duration{0, 2 * time.Minute} {
		t.Run(timeout.String(), func(t *testing.T) {
			want := timeout
			if want == 0 {
				want = 30 * time.Second
			}
			b := memory.New()
			inWorld(t, b, func(w *world) {
				w.start()
				w.api.Create(bound("other", ""))
				w.pass(time.Minute)
				b.Mute()
				p := bound("p", "a")
				p.Spec.RestartPolicy = corev1.RestartPolicyNever
				w.api.Create(p)
				w.pass(time.Second)
				b.Lose("d/p")
				begin := time.Now()
				w.until("the pod is given up", want+time.Minute, func() bool { return w.phase("p") == corev1.PodFailed })
				if took := time.Since(begin); took < want-2*time.Second || took > want+20*time.Second {
					w.Errorf("given up after %v, want about %v", took, want)
				}
			}, onNode, func(cfg *PodControllerConfig) { cfg.PodVisibilityTimeout = timeout })
		})
	}
}

// authority is a provider that reports whether its answers are complete.
type authority struct {
	memory.Notifying
	complete *atomic.Bool
}

func (a authority) AnswersForAllPods() bool { return a.complete.Load() }

// TestAuthorityDecidesWhatIsMissing: complete answers need no quarantine, and with incomplete answers not even a single pod is lost.
func TestAuthorityDecidesWhatIsMissing(t *testing.T) {
	const pods = 20
	b, complete := memory.New(), &atomic.Bool{}
	inWorld(t, b, func(w *world) {
		complete.Store(true)
		w.start()
		w.runWith("p", pods, corev1.RestartPolicyNever)
		for i := range pods / 2 {
			b.Lose(fmt.Sprint("d/p", i))
		}
		w.until("the lost pods have failed", 30*time.Second, func() bool { return w.phases("p", pods)[corev1.PodFailed] == pods/2 })
		complete.Store(false)
		b.Lose(fmt.Sprint("d/p", pods-1))
		w.pass(time.Hour)
		if got := w.phases("p", pods)[corev1.PodFailed]; got != pods/2 {
			w.Errorf("%d pods have failed while the answers are not complete, want %d", got, pods/2)
		}
		complete.Store(true)
		w.until("the last one has failed", 30*time.Second, func() bool { return w.phases("p", pods)[corev1.PodFailed] == pods/2+1 })
	}, onNode, func(cfg *PodControllerConfig) { cfg.Provider = authority{memory.Notifying{Backend: b}, complete} })
}
