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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	k8stesting "k8s.io/client-go/testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/membackend"
	"github.com/virtual-kubelet/virtual-kubelet/internal/objects"
)

// TestUsersLabelsSurviveOldReports: a report shows the labels that the backend
// had when it was made, which users may have changed since.
func TestUsersLabelsSurviveOldReports(t *testing.T) {
	relabel := func(w *world, value string) {
		w.api.Change("d", "p", func(p *corev1.Pod) { p.Labels = map[string]string{"user": value} })
	}
	for name, configs := range map[string][]func(*PodControllerConfig){"notified": nil, "polled": {silent}} {
		t.Run(name, func(t *testing.T) {
			b := membackend.New()
			inWorld(t, b, func(w *world) {
				w.start()
				p := bound("p", "a")
				p.Labels = map[string]string{"user": "0"}
				w.api.Create(p)
				w.pass(10 * time.Second)
				relabel(w, "1")
				w.pass(10 * time.Second)
				if got := w.api.Pod("d", "p").Labels["user"]; got != "1" {
					t.Errorf("label is %q, want what the user set, 1", got)
				}
				b.Script(func(_ context.Context, method, _ string) error {
					if method == "update" {
						return membackend.ErrUnwell
					}
					return nil
				})
				for _, value := range []string{"2", "3", "4"} {
					relabel(w, value)
					w.pass(7 * time.Second)
				}
				if got := w.api.Pod("d", "p").Labels["user"]; got != "4" {
					t.Errorf("label is %q, want what the user set last, 4", got)
				}
			}, configs...)
		})
	}
}

// TestChangedWhileDownStillTellsItsStatus: the backend takes the change, and
// what it had to say meanwhile is not lost.
func TestChangedWhileDownStillTellsItsStatus(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.halt()
		b.Mute()
		b.Change("d/p", func(p *corev1.Pod) { *p = *membackend.Ended(p, 3) })
		w.api.Change("d", "p", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "j" })
		w.start()
		w.pass(time.Minute)
		w.wantPhase("p", corev1.PodFailed)
	})
}

func TestStatusIsAskedForUntilItIsKnown(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.halt()
		b.Mute()
		b.Change("d/p", func(p *corev1.Pod) { *p = *membackend.Ended(p, 3) })
		b.Script(membackend.FailFirst("status", 2))
		w.start()
		w.pass(time.Minute)
		w.wantPhase("p", corev1.PodFailed)
	})
}

// TestNewsOvertakeAPoll: an answer that was on its way when the provider
// reported is older than the report.
func TestNewsOvertakeAPoll(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.halt()
		w.configs = append(w.configs, func(cfg *PodControllerConfig) {
			cfg.Provider = slowStatus{membackend.Notifying{Backend: b}}
		})
		w.start()
		w.pass(time.Second)
		b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = "newest" })
		w.pass(time.Minute)
		if got := w.api.Pod("d", "p").Status.Message; got != "newest" {
			t.Errorf("message is %q, want the newest", got)
		}
	})
}

// slowStatus reads the status at once and takes five seconds to hand it out.
type slowStatus struct{ membackend.Notifying }

func (s slowStatus) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	status, err := s.Notifying.GetPodStatus(ctx, namespace, name)
	status = status.DeepCopy()
	<-time.After(5 * time.Second)
	return status, err
}

// TestQuarantineBeginsAnewForAPodThatCameBack: what looked like an orphan and
// then was wanted is one no longer.
func TestQuarantineBeginsAnewForAPodThatCameBack(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		w.start()
		for i := range 20 {
			w.api.Create(bound(fmt.Sprint("p", i), ""))
		}
		w.pass(time.Second)
		lost := make([]*corev1.Pod, 15)
		for i := range lost {
			lost[i] = w.api.Pod("d", fmt.Sprint("p", i))
			w.api.Vanish("d", lost[i].Name)
		}
		w.api.Compact()
		w.pass(time.Minute)
		for _, p := range lost {
			w.api.Create(p)
		}
		w.pass(time.Minute)
		w.ctl.orphans.mu.Lock()
		left := len(w.ctl.orphans.since)
		w.ctl.orphans.mu.Unlock()
		if left != 0 {
			t.Errorf("%d pods still count as orphans after all came back", left)
		}
		if st := w.ctl.states.get("d/p0"); st.orphan.present {
			t.Errorf("p0 is still in quarantine: %+v", st.orphan)
		}
		w.pass(10 * time.Minute)
		for _, p := range lost {
			w.api.Vanish("d", p.Name)
		}
		w.api.Compact()
		w.pass(4 * time.Minute)
		if b.Len() != 20 {
			t.Errorf("%d pods are left at the backend, want all 20 to be held a second time", b.Len())
		}
	})
}

// TestSomebodyElsesFailedIsNoStop: PodGC or an eviction may declare a pod
// failed; while the backend cannot be asked, that is no word of the backend's.
func TestSomebodyElsesFailedIsNoStop(t *testing.T) {
	b := membackend.New()
	b.StopTime = 10 * time.Minute
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		b.Script(func(_ context.Context, method, _ string) error {
			if method == "get" || method == "list" {
				return membackend.ErrUnwell
			}
			return nil
		})
		w.api.Change("d", "p", func(p *corev1.Pod) { p.Finalizers = []string{"x/y"} })
		w.api.Delete("d", "p", 30)
		w.api.Change("d", "p", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed; p.Finalizers = nil })
		w.pass(5 * time.Minute)
		if w.api.Pod("d", "p") == nil {
			t.Error("the API object is gone while the backend still runs the pod")
		}
	})
}

// TestDeletedWhileDownIsStoppedFirst: a former life ran the pod, so its absence
// alone does not confirm that it has stopped.
func TestDeletedWhileDownIsStoppedFirst(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.halt()
		w.api.Delete("d", "p", 30)
		b.Script(func(_ context.Context, method, _ string) error {
			if method == "get" {
				return errors.New("no such pod") // without a kind: the list decides
			}
			return nil
		})
		w.configs = append(w.configs, func(cfg *PodControllerConfig) {
			cfg.Provider = emptyLists{cfg.Provider.(membackend.Notifying)}
		})
		w.start()
		w.pass(time.Minute)
		wantCalls(t, b, "create d/p", "delete d/p")
		w.wantPhase("p", "")
	})
}

type emptyLists struct{ membackend.Notifying }

func (emptyLists) GetPods(context.Context) ([]*corev1.Pod, error) { return nil, nil }

// hoarder is a backend that keeps what has ended, for ever.
type hoarder struct {
	membackend.Notifying
	deletes *atomic.Int32
}

func (h hoarder) DeletePod(_ context.Context, pod *corev1.Pod) error {
	h.deletes.Add(1)
	if kept := h.Has(membackend.Key(pod)); kept != nil && kept.Status.Phase == corev1.PodRunning {
		h.Change(membackend.Key(pod), func(p *corev1.Pod) { *p = *membackend.Ended(p, 0) })
	}
	return nil
}

func TestBackendThatKeepsFinishedPods(t *testing.T) {
	b := membackend.New()
	var deletes atomic.Int32
	inWorld(t, b, func(w *world) {
		w.start()
		const n = 15
		for i := range n {
			w.api.Create(bound(fmt.Sprint("p", i), ""))
		}
		w.pass(time.Second)
		for i := range n {
			w.api.Delete("d", fmt.Sprint("p", i), -1)
		}
		w.pass(time.Hour)
		if w.api.Len() != 0 {
			t.Errorf("%d pods are left in the API server", w.api.Len())
		}
		if got := deletes.Load(); got != n {
			t.Errorf("%d deletes, want one for each of %d pods", got, n)
		}
		w.ctl.orphans.mu.Lock()
		if held := len(w.ctl.orphans.since); held != 0 {
			t.Errorf("%d finished pods count as orphans", held)
		}
		w.ctl.orphans.mu.Unlock()
		w.api.Create(bound("p0", "again")) // as a StatefulSet does
		w.pass(time.Minute)
		w.wantPhase("p0", corev1.PodRunning)
		for i := range n {
			b.Lose(fmt.Sprint("d/p", i))
		}
		w.api.Delete("d", "p0", 0)
		w.pass(10 * time.Minute)
		if left := w.ctl.states.size(); left != 0 {
			t.Errorf("%d states are left", left)
		}
	}, func(cfg *PodControllerConfig) { cfg.Provider = hoarder{membackend.Notifying{Backend: b}, &deletes} })
}

// TestEndedInTimeAlthoughTheAPIServerIsDown: the deadline of a pod that has
// ended before it means nothing, however late its status can be written.
func TestEndedInTimeAlthoughTheAPIServerIsDown(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		w.start()
		p := bound("p", "a")
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		seconds := int64(90)
		p.Spec.ActiveDeadlineSeconds = &seconds
		w.api.Create(p)
		w.pass(10 * time.Second)
		var down atomic.Bool
		down.Store(true)
		w.api.Fault = func(verb, _, _ string) error {
			if verb == "patch" && down.Load() {
				return apierrors.NewServiceUnavailable("try later")
			}
			return nil
		}
		b.Change("d/p", func(p *corev1.Pod) { *p = *membackend.Ended(p, 0) })
		w.pass(10 * time.Minute)
		down.Store(false)
		w.pass(2 * time.Minute)
		w.wantPhase("p", corev1.PodSucceeded)
	})
}

// TestPodsOfOtherNodesAreLeftAlone: some backends list more than was asked for.
func TestPodsOfOtherNodesAreLeftAlone(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		other := bound("theirs", "t")
		other.Spec.NodeName = "m"
		b.Run(other)
		w.start()
		w.pass(time.Hour)
		wantCalls(t, b)
	}, func(cfg *PodControllerConfig) { cfg.NodeName = "n" })
}

// TestRefusedLastWordDoesNotKeepThePod: a status that the API server will never
// take must not hold a pod that has stopped.
func TestRefusedLastWordDoesNotKeepThePod(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.api.Fault = func(verb, _, name string) error {
			if verb == "patch" {
				return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, name, nil)
			}
			return nil
		}
		w.api.Delete("d", "p", 5)
		w.pass(time.Minute)
		w.wantPhase("p", "")
		if e := strings.Join(w.events(), "\n"); !strings.Contains(e, eventStatusFailed) {
			t.Errorf("events are %q, want %s", e, eventStatusFailed)
		}
	})
}

// TestConditionsThatTheProviderDropsAreItsOwn: it repeats those of others at
// times, and then no longer.
func TestConditionsThatTheProviderDropsAreItsOwn(t *testing.T) {
	b := membackend.New()
	conditions := func(types ...corev1.PodConditionType) {
		b.Change("d/p", func(p *corev1.Pod) {
			p.Status.Conditions = nil
			for _, kind := range types {
				p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue})
			}
		})
	}
	inWorld(t, b, func(w *world) {
		w.start()
		p := bound("p", "a")
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}}
		w.api.Create(p)
		w.pass(time.Second)
		w.api.Change("d", "p", func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "gate", Status: corev1.ConditionTrue})
		})
		conditions("gate", "mine")
		w.pass(10 * time.Second)
		conditions()
		w.pass(10 * time.Second)
		if p := w.api.Pod("d", "p"); hasCondition(p, "mine") || !hasCondition(p, "gate") {
			t.Errorf("conditions are %v, want the gate without mine", p.Status.Conditions)
		}
		w.api.Change("d", "p", func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "mine", Status: corev1.ConditionTrue})
		})
		w.pass(time.Minute)
		if !hasCondition(w.api.Pod("d", "p"), "mine") {
			t.Error("a condition that the provider dropped once, and another writer has set since, is lost")
		}
	})
}

// TestAPanicIsNoAnswer: only a GetPod that answers makes a list count.
func TestAPanicIsNoAnswer(t *testing.T) {
	b := membackend.New()
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
	}, func(cfg *PodControllerConfig) { cfg.Provider = emptyLists{membackend.Notifying{Backend: b}} })
}

// TestOldListSaysNothingOfANewPod: a backend without UIDs listed the old pod
// before the new one of the same name came.
func TestOldListSaysNothingOfANewPod(t *testing.T) {
	b := membackend.New()
	b.KeepsNoUID = true
	inWorld(t, b, func(w *world) {
		lists := &slowLists{Backend: b}
		w.configs = append(w.configs, func(cfg *PodControllerConfig) { cfg.Provider = lists })
		w.start()
		w.api.Create(bound("p", "old"))
		w.pass(10 * time.Second)
		b.Change("d/p", func(p *corev1.Pod) { *p = *membackend.Ended(p, 1) })
		lists.slow.Store(true)
		w.pass(6 * time.Second) // a list with the old pod is on its way
		w.api.Delete("d", "p", 0)
		w.api.Create(bound("p", "new"))
		w.pass(time.Minute)
		w.wantPhase("p", corev1.PodRunning)
	})
}

// slowLists reads the list at once and takes ten seconds to hand it out.
type slowLists struct {
	*membackend.Backend
	slow atomic.Bool
}

func (s *slowLists) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	pods, err := s.Backend.GetPods(ctx)
	if s.slow.Load() {
		<-time.After(10 * time.Second)
	}
	return pods, err
}

// TestFinishedPodsCostNothing: a pod that has ended is looked at once more, and
// not at every resync for as long as its object exists.
func TestFinishedPodsCostNothing(t *testing.T) {
	for name, forgets := range map[string]bool{"kept": false, "forgotten": true} {
		t.Run(name, func(t *testing.T) {
			b := membackend.New()
			inWorld(t, b, func(w *world) {
				var gets atomic.Int32
				b.Script(func(_ context.Context, method, _ string) error {
					if method == "get" {
						gets.Add(1)
					}
					return nil
				})
				p := bound("p", "a")
				p.Spec.RestartPolicy = corev1.RestartPolicyNever
				for range 2 { // lives
					w.start()
					if w.api.Pod("d", "p") == nil {
						w.api.Create(p)
						w.pass(time.Second)
						b.Change("d/p", func(p *corev1.Pod) { *p = *membackend.Ended(p, 0) })
						if forgets {
							b.Lose("d/p")
						}
					}
					w.pass(time.Minute)
					before := gets.Load()
					w.pass(time.Hour)
					if n := gets.Load() - before; n > 0 {
						t.Errorf("%d calls of GetPod in an hour for a pod that has ended", n)
					}
					if !forgets { // and yet one that runs on is noticed
						b.Change("d/p", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
						w.pass(2 * time.Minute)
						if b.Has("d/p") != nil {
							t.Error("a pod that ended runs again, and nobody stops it")
						}
						forgets = true
					}
					w.halt()
				}
			})
		})
	}
}

// TestRequestThatHangsIsGivenUp: a connection may be dead without a word.
func TestRequestThatHangsIsGivenUp(t *testing.T) {
	b := membackend.New()
	inWorld(t, b, func(w *world) {
		dead := &deadAtFirst{PodsGetter: w.api}
		dead.left.Store(10)
		w.configs = append(w.configs, func(cfg *PodControllerConfig) { cfg.PodClient = dead })
		w.start()
		for i := range 10 {
			w.api.Create(bound(fmt.Sprint("p", i), ""))
		}
		w.pass(5 * time.Minute)
		for i := range 10 {
			w.wantPhase(fmt.Sprint("p", i), corev1.PodRunning)
		}
	})
}

// deadAtFirst answers no patch for a number of times.
type deadAtFirst struct {
	corev1client.PodsGetter
	left atomic.Int32
}

func (d *deadAtFirst) Pods(namespace string) corev1client.PodInterface {
	return deadPods{d.PodsGetter.Pods(namespace), &d.left}
}

type deadPods struct {
	corev1client.PodInterface
	left *atomic.Int32
}

func (d deadPods) Patch(ctx context.Context, name string, kind types.PatchType, body []byte, opts metav1.PatchOptions, sub ...string) (*corev1.Pod, error) {
	if d.left.Add(-1) >= 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return d.PodInterface.Patch(ctx, name, kind, body, opts, sub...)
}

// TestTroubleWithTheOldPodShowsInTheNewOne: it is why the new one waits.
func TestTroubleWithTheOldPodShowsInTheNewOne(t *testing.T) {
	b := membackend.New()
	b.Fault = membackend.FailFirst("delete", 1000)
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "old"))
		w.pass(time.Second)
		w.api.Delete("d", "p", 0)
		w.api.Create(bound("p", "new"))
		w.pass(time.Minute)
		if got := w.api.Pod("d", "p").Status.Message; !strings.Contains(got, membackend.ErrUnwell.Error()) {
			t.Errorf("message of the new pod is %q, want why the old one does not go", got)
		}
	})
}

// TestKickReachesAPodThatIsBeingTried: its try may have begun before the
// backend was well.
func TestKickReachesAPodThatIsBeingTried(t *testing.T) {
	b := membackend.New()
	var mu sync.Mutex
	well := false
	b.Fault = func(_ context.Context, method, _ string) error {
		mu.Lock()
		ok := well
		mu.Unlock()
		if method == "create" && !ok {
			time.Sleep(30 * time.Second)
			return membackend.ErrUnwell
		}
		return nil
	}
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		for b.Count("create d/p") < 10 {
			w.pass(time.Second)
		}
		mu.Lock()
		well = true
		mu.Unlock()
		w.ctl.Kick()
		w.pass(31 * time.Second)
		w.wantPhase("p", corev1.PodRunning)
	})
}

// TestOldPodsConfigMapIsLetGo: a pod of the same name replaces the one that
// named a ConfigMap, without a moment in between.
func TestOldPodsConfigMapIsLetGo(t *testing.T) {
	b := membackend.New()
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

// TestStateOfARemovedPodStaysForgotten: the watch may tell of the removal before
// the answer to the request does.
func TestStateOfARemovedPodStaysForgotten(t *testing.T) {
	inWorld(t, membackend.New(), func(w *world) {
		w.configs = append(w.configs, func(cfg *PodControllerConfig) { cfg.PodClient = lateAnswers{w.api} })
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.api.Delete("d", "p", -1)
		w.pass(time.Minute)
		w.wantPhase("p", "")
		if n := w.ctl.states.size(); n != 0 {
			t.Errorf("%d states are left", n)
		}
	})
}

// lateAnswers answers a delete a second after it was done.
type lateAnswers struct{ corev1client.PodsGetter }

func (l lateAnswers) Pods(namespace string) corev1client.PodInterface {
	return latePods{l.PodsGetter.Pods(namespace)}
}

type latePods struct{ corev1client.PodInterface }

func (l latePods) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	err := l.PodInterface.Delete(ctx, name, opts)
	<-time.After(time.Second)
	return err
}
