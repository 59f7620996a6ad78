// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// recorded is a recorded event.
type recorded struct {
	key, reason, message string
	at                   time.Time
}

// eventLog is a recorder that stores events with their pods and times.
type eventLog struct {
	mu     sync.Mutex
	events []recorded // guarded by mu
}

func (l *eventLog) Event(object runtime.Object, _, reason, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, recorded{keyOf(object.(*corev1.Pod)), reason, message, time.Now()})
}

func (l *eventLog) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	l.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

func (l *eventLog) AnnotatedEventf(object runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	l.Eventf(object, kind, reason, format, args...)
}

func (l *eventLog) use(cfg *PodControllerConfig) { cfg.EventRecorder = l }

// of returns the events with the reason, of all pods.
func (l *eventLog) of(reason string) []recorded {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.events), func(e recorded) bool { return e.reason != reason })
}

// writesOf returns the times of the writes and events of each pod, in order.
func (w *world) writesOf(l *eventLog) map[string][]time.Time {
	at := map[string][]time.Time{}
	for _, write := range w.api.Writes("") {
		at[write.Key] = append(at[write.Key], write.At)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		at[e.key] = append(at[e.key], e.at)
	}
	for _, times := range at {
		slices.SortFunc(times, time.Time.Compare)
	}
	return at
}

// most returns the maximum number of the sorted times in one window of that length.
func most(times []time.Time, window time.Duration) (n int) {
	first := 0
	for i := range times {
		for times[i].Sub(times[first]) >= window {
			first++
		}
		n = max(n, i-first+1)
	}
	return n
}

// TestFault58CreateFailsForHours: the number of messages about a failure does not grow with the number of tries.
func TestFault58CreateFailsForHours(t *testing.T) {
	var request atomic.Int64
	same := func() error { return errors.New("the quota of the project is used up") }
	for name, test := range map[string]struct {
		pods, hours int
		fail        func() error
	}{
		"the same error, many pods":    {200, 1, same},
		"the same error, many hours":   {10, 3, same},
		"another request id each time": {10, 3, func() error { return fmt.Errorf("429 (request %d)", request.Add(1)) }},
	} {
		t.Run(name, func(t *testing.T) {
			pods, hours := test.pods, test.hours
			b, log := memory.New(), &eventLog{}
			b.Fault = func(_ context.Context, method, _ string) error {
				if method == memory.Create {
					return test.fail()
				}
				return nil
			}
			inWorld(t, b, func(w *world) {
				w.start()
				w.create("p", pods, time.Second)
				w.pass(time.Duration(hours) * time.Hour)
				minute, later, all := 0, 0, 0
				for key, times := range w.writesOf(log) {
					all += len(times)
					minute = max(minute, most(times, time.Minute))
					settled, _ := slices.BinarySearchFunc(times, times[0].Add(2*time.Minute), time.Time.Compare)
					later = max(later, len(times)-settled)
					if got := w.api.Pod("d", strings.TrimPrefix(key, "d/")).Status; got.Phase != corev1.PodPending || got.Reason != "ProviderFailed" {
						w.Errorf("pod %s is %s %q, want Pending and ProviderFailed", key, got.Phase, got.Reason)
					}
				}
				if minute > 2 {
					w.Errorf("%d writes for one pod in a minute, want at most 2", minute)
				}
				if fives := hours * 60 / 5; later > fives {
					w.Errorf("%d writes for one pod after the first 2 minutes, want at most %d: 1 in 5 minutes", later, fives)
				}
				tries := b.Count("create d/p0")
				if tries < hours*60 {
					w.Errorf("%d tries in %d hours, want one a minute", tries, hours)
				}
				faultrow.Record(t, 58, fmt.Sprintf("CreatePod of %d pods fails for %d h, %d times for each, with %s", pods, hours, tries, name),
					"at most %d writes (patches and events) for a pod in one minute, %d in all that came after the first 2 min; %.1f for each pod in %d h",
					minute, later, float64(all)/float64(pods), hours)
			}, log.use)
		})
	}
}

// TestFault61UpdateAlwaysFails: the pod runs, and its status shows that.
func TestFault61UpdateAlwaysFails(t *testing.T) {
	var request atomic.Int64
	for name, fail := range map[string]func() error{
		"the same error":               func() error { return errors.New("update is not supported") },
		"another request id each time": func() error { return fmt.Errorf("500 (request %d)", request.Add(1)) },
	} {
		t.Run(name, func(t *testing.T) {
			b, log := memory.New(), &eventLog{}
			inWorld(t, b, func(w *world) {
				w.start()
				w.api.Create(bound("p", "a"))
				w.pass(time.Minute)
				b.Script(func(_ context.Context, method, _ string) error {
					if method == memory.Update {
						return fail()
					}
					return nil
				})
				patches := len(w.api.Writes("d/p"))
				w.label("p", "one")
				for range 59 {
					w.pass(time.Minute)
					if s := w.api.Pod("d", "p").Status; s.Phase != corev1.PodRunning || s.Reason != "" || s.Message != "" {
						w.Fatalf("the pod is %s %q %q while UpdatePod fails, want Running and no more", s.Phase, s.Reason, s.Message)
					}
				}
				patches = len(w.api.Writes("d/p")) - patches
				events := len(log.of(eventUpdateFailed))
				if events == 0 || events > 3 {
					w.Errorf("%d events in an hour of failures, want 1 to 3", events)
				}
				if patches != 0 {
					w.Errorf("%d patches of the pod, want none", patches)
				}
				tries := b.Count("update d/p")
				w.label("p", "two")
				w.pass(100 * time.Millisecond)
				if n := b.Count("update d/p"); n != tries+1 {
					w.Errorf("%d tries right after the next change, want %d", n, tries+1)
				}
				b.Heal()
				w.pass(time.Minute + time.Second)
				if got := b.Has("d/p").Labels["l"]; got != "two" {
					w.Errorf("the backend has the label %q after it healed, want two", got)
				}
				faultrow.Record(t, 61, fmt.Sprintf("one change of a label, then UpdatePod fails for an hour, %d times, with %s", tries, name),
					"reason and message empty, %d patches, %d events; the next change was sent at once, and arrived when the backend healed", patches, events)
			}, log.use)
		})
	}
}

// label sets a label of the pod, as a user does.
func (w *world) label(name, value string) {
	w.api.Change("d", name, func(p *corev1.Pod) { p.Labels = map[string]string{"l": value} })
}
