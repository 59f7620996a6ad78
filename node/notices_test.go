// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestFailuresAreSaidSeldom: a failure occurs every minute, and is reported only at these times.
func TestFailuresAreSaidSeldom(t *testing.T) {
	for name, test := range map[string]struct {
		text func(minute int) string
		want string
	}{
		"the same":       {func(int) string { return "a" }, "[0 10 60 110 160]"},
		"always another": {func(m int) string { return fmt.Sprint(m) }, "[0 1 11 21 31 41 51 61 71 81 91 101 111 121 131 141 151 161 171]"},
		"changes once":   {func(m int) string { return fmt.Sprint(m >= 30) }, "[0 10 30 80 130]"},
		"two by turns":   {func(m int) string { return fmt.Sprint(m % 2) }, "[0 1 12 23 34 45 56 67 78 89 100 111 122 133 144 155 166 177]"},
	} {
		t.Run(name, func(t *testing.T) {
			var n notice
			var news bool
			var got []int
			for minute := range 180 {
				if n, news = n.next(test.text(minute), time.Unix(0, 0).Add(time.Duration(minute)*time.Minute)); news {
					got = append(got, minute)
				}
			}
			if fmt.Sprint(got) != test.want {
				t.Errorf("said in the minutes %v, want %s", got, test.want)
			}
		})
	}
}

func TestSuccessEndsWhatIsSaid(t *testing.T) {
	b, log := memory.New(), &eventLog{}
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		for i := range 3 {
			b.Inject(memory.Fault{Method: memory.Update, Times: 1, Err: memory.ErrUnwell})
			w.label("p", fmt.Sprint(i))
			w.pass(10 * time.Second)
		}
		if told := len(log.of(eventUpdateFailed)); told != 3 {
			w.Errorf("%d events of 3 failures, each with a success after it, want 3", told)
		}
	}, log.use)
}

// TestFailedStopIsSaidAtOnce: an earlier failure of the create does not delay the report.
func TestFailedStopIsSaidAtOnce(t *testing.T) {
	b, log := memory.New(), &eventLog{}
	b.Inject(memory.Fault{Method: memory.Create, Err: memory.ErrUnwell})
	b.Inject(memory.Fault{Method: memory.Delete, Err: errors.New("locked")})
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(12 * time.Minute)
		w.api.Delete("d", "p", 1)
		w.pass(time.Second)
		if got := w.api.Pod("d", "p").Status.Message; !strings.Contains(got, "locked") || len(log.of(eventDeleteFailed)) != 1 {
			w.Errorf("the pod says %q, with %d events; want why it does not go", got, len(log.of(eventDeleteFailed)))
		}
	}, log.use)
}

// TestDeletionDoesNotWaitForAFailedUpdate: neither do statuses from the backend.
func TestDeletionDoesNotWaitForAFailedUpdate(t *testing.T) {
	b := memory.New()
	b.Inject(memory.Fault{Method: memory.Update, Err: memory.ErrUnwell})
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.label("p", "one")
		w.pass(10*time.Minute + 30*time.Second)
		b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = "warm" })
		w.pass(time.Second)
		if got := w.api.Pod("d", "p").Status.Message; got != "warm" {
			w.Errorf("message is %q, want what the backend says", got)
		}
		w.api.Delete("d", "p", 30)
		w.pass(100 * time.Millisecond)
		if n := b.Count("delete d/p"); n != 1 {
			w.Errorf("%d stops right after the deletion, want 1", n)
		}
	})
}

// TestPodIsWatchedWhileItsUpdateFails: the pod was changed while no daemon ran, and the backend refuses the change.
func TestPodIsWatchedWhileItsUpdateFails(t *testing.T) {
	for name, configs := range map[string][]func(*PodControllerConfig){"notifying": nil, "polled": {silent}} {
		t.Run(name, func(t *testing.T) {
			b := memory.New()
			inWorld(t, b, func(w *world) {
				w.start()
				w.api.Create(bound("p", "a"))
				w.pass(10 * time.Second)
				w.halt()
				w.api.Change("d", "p", func(p *corev1.Pod) { p.Generation++; p.Spec.Containers[0].Image = "j" })
				b.Inject(memory.Fault{Method: memory.Update, Err: memory.ErrUnwell})
				b.Mute()
				b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = "changed while no daemon ran" })
				w.start()
				w.pass(30 * time.Second)
				if got := w.api.Pod("d", "p").Status.Message; got != "changed while no daemon ran" {
					w.Errorf("message is %q, want what the backend says", got)
				}
				if w.api.Pod("d", "p").Status.ObservedGeneration > 1 {
					w.Error("the status claims that the backend has taken the change")
				}
			}, configs...)
		})
	}
}

// TestRefusedWritesAreSaidSeldom: the API server may put a different number into each refusal.
func TestRefusedWritesAreSaidSeldom(t *testing.T) {
	b, log := memory.New(), &eventLog{}
	inWorld(t, b, func(w *world) {
		w.but = []string{"S5"} // no status is accepted
		refused := 0
		w.api.Fault = func(verb, _, _ string) error {
			if verb != "patch" {
				return nil
			}
			refused++
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", fmt.Errorf("policy said no (request %d)", refused))
		}
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Hour)
		if told := len(log.of(eventStatusFailed)); refused < 60 || told == 0 || told > 3 {
			w.Errorf("%d events of %d refused writes in an hour, want 1 to 3", told, refused)
		}
		wantCalls(t, b, "create d/p")
	}, log.use)
}

// TestMissingObjectsAreSaidSeldom: each try reads the objects again.
func TestMissingObjectsAreSaidSeldom(t *testing.T) {
	for name, optional := range map[string]bool{"optional": true, "mandatory": false} {
		t.Run(name, func(t *testing.T) {
			b, log := memory.New(), &eventLog{}
			b.Inject(memory.Fault{Method: memory.Create, Err: memory.ErrUnwell})
			inWorld(t, b, func(w *world) {
				w.start()
				p := bound("p", "a")
				p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}, Optional: &optional,
				}}}
				w.api.Create(p)
				w.pass(time.Hour)
				reason := map[bool]string{true: "OptionalConfigMapNotFound", false: "MandatoryConfigMapNotFound"}[optional]
				if told := len(log.of(reason)); told == 0 || told > 3 {
					w.Errorf("%d events %s in an hour, want 1 to 3", told, reason)
				}
				if n := len(w.api.Writes("d/p")); n > 2 {
					w.Errorf("%d patches of the pod, want at most 2", n)
				}
			}, log.use)
		})
	}
}

// TestFailedRemovalOfASecondPodIsSaidSeldom: each list contains the second pod again.
func TestFailedRemovalOfASecondPodIsSaidSeldom(t *testing.T) {
	b, log := memory.New(), &eventLog{}
	inWorld(t, b, func(w *world) {
		w.but = []string{"S1"} // the second instance remains
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		before := len(w.api.Writes("d/p"))
		b.Extra(bound("p", "x"))
		b.Inject(memory.Fault{Method: memory.Delete, Err: memory.ErrUnwell})
		w.pass(time.Hour)
		if told := len(log.of(eventDeleteFailed)); told == 0 || told > 3 {
			w.Errorf("%d events in an hour, want 1 to 3", told)
		}
		if n := len(w.api.Writes("d/p")) - before; n > 2 {
			w.Errorf("%d patches of the pod, want at most 2", n)
		}
	}, log.use)
}

// TestHungCallsAreSaidSeldom: each call hangs for a different time.
func TestHungCallsAreSaidSeldom(t *testing.T) {
	b, log := memory.New(), &eventLog{}
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		b.Inject(memory.Fault{Method: memory.Update, Hang: true})
		before := len(w.api.Writes("d/p"))
		w.label("p", "one")
		w.pass(3 * time.Hour)
		if told := len(log.of(eventCallHangs)) + len(log.of(eventUpdateFailed)); told == 0 || told > 2*5 {
			w.Errorf("%d events in 3 hours, want at most 5 of each kind", told)
		}
		if n := len(w.api.Writes("d/p")) - before; n != 0 {
			w.Errorf("%d patches of a pod that runs as it did, want none", n)
		}
	}, log.use, func(cfg *PodControllerConfig) { cfg.ProviderCallTimeout = 40 * time.Second })
}

// TestHungCallThatReturnedIsNotShown: the result of the call is shown, even if it was reported recently.
func TestHungCallThatReturnedIsNotShown(t *testing.T) {
	b := memory.New()
	b.Inject(memory.Fault{Method: memory.Create, Hang: true})
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Hour)
		hangs := 0
		for range 60 {
			w.pass(time.Minute)
			if got := w.api.Pod("d", "p").Status.Message; strings.Contains(got, "has not returned") {
				hangs++
			}
		}
		if hangs > 30 {
			w.Errorf("the pod says in %d of 60 minutes that a call of 40 s has not returned", hangs)
		}
		if n := len(w.api.Writes("d/p")); n > 2*(2+2*6) {
			w.Errorf("%d patches in 2 hours, want at most 2 in 10 minutes, and 4 more at first", n)
		}
	}, func(cfg *PodControllerConfig) { cfg.ProviderCallTimeout = 40 * time.Second })
}

// TestRepeatedStopIsSaidOnce: DeletePod returns not-found for a pod that the backend shows, so the stop is requested repeatedly.
func TestRepeatedStopIsSaidOnce(t *testing.T) {
	b := memory.New()
	b.Inject(memory.Fault{Method: memory.Delete, Err: errdefs.NotFound("no such pod")})
	inWorld(t, b, func(w *world) {
		w.start()
		w.runWith("p", 1, corev1.RestartPolicyAlways)
		w.api.Delete("d", "p0", 5)
		w.pass(time.Hour)
		if n := b.Count("delete d/p0"); n < 100 {
			t.Errorf("%d DeletePods in an hour: the stop is not tried any more", n)
		}
		if e := strings.Join(w.events(), "\n"); strings.Count(e, eventDeleteSuccess) != 1 {
			t.Errorf("events are %q, want one that says %s", e, eventDeleteSuccess)
		}
		b.Heal()
		w.until("the pod is gone", time.Minute, func() bool { return w.api.Len() == 0 && b.Len() == 0 })
	})
}
