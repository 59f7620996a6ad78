// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// scribe is a provider that writes to its own copy of a pod in every UpdatePod, and reports the change during or after the call.
type scribe struct {
	memory.Notifying
	write func(pod *corev1.Pod, n int) // the change of the n-th update
	delay time.Duration

	mu    sync.Mutex
	given []metadata // guarded by mu; the argument of each UpdatePod
}

func (s *scribe) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	s.mu.Lock()
	s.given = append(s.given, metadata{maps.Clone(pod.Labels), maps.Clone(pod.Annotations)})
	n := len(s.given)
	s.mu.Unlock()
	if err := s.Notifying.UpdatePod(ctx, pod); err != nil {
		return err
	}
	key, write := memory.Key(pod), func(p *corev1.Pod) { s.write(p, n) }
	if s.delay > 0 {
		time.AfterFunc(s.delay, func() { s.Change(key, write) })
	} else {
		s.Change(key, write)
	}
	return nil
}

// updates returns the arguments of the UpdatePod calls after the first n.
func (s *scribe) updates(n int) []metadata {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given[n:]
}

func setAnnotation(p *corev1.Pod, key, value string) {
	p.Annotations = maps.Clone(p.Annotations)
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[key] = value
}

// TestFault56ProvidersOwnWritesAreNoNews: the provider's own changes of a pod come back from the API server, and are not sent to it again;
// changes by users are.
func TestFault56ProvidersOwnWritesAreNoNews(t *testing.T) {
	const revision = "provider.example/revision"
	wrote := func(n int) string { return fmt.Sprint("wrote ", n) }
	most, mostWrites, changes := 0, 0, 0
	for _, tt := range []struct {
		name  string
		key   string // of the provider's annotation
		write func(pod *corev1.Pod, n int)
	}{
		{"adds an annotation", revision, func(p *corev1.Pod, n int) { setAnnotation(p, revision, wrote(n)) }},
		{"changes a user's annotation", "user", func(p *corev1.Pod, n int) { setAnnotation(p, "user", wrote(n)) }},
		{"drops its last annotation", revision, func(p *corev1.Pod, n int) {
			setAnnotation(p, fmt.Sprint(revision, n), "")
			delete(p.Annotations, fmt.Sprint(revision, n-1))
			setAnnotation(p, revision, wrote(n))
		}},
	} {
		for _, delay := range []time.Duration{0, 3 * time.Second} {
			t.Run(fmt.Sprintf("%s, %v after UpdatePod", tt.name, delay), func(t *testing.T) {
				b := memory.New()
				s := &scribe{write: tt.write, delay: delay}
				inWorld(t, b, func(w *world) {
					w.but = []string{"S6"} // the provider overwrites a user's change of its annotation after it has received it
					seen, writes := 0, 0
					// expect lets ten minutes pass after a user's change: the provider must receive it, and nothing else more than twice.
					expect := func(what string, told func(metadata) bool) {
						w.Helper()
						w.pass(time.Minute)
						mostWrites = max(mostWrites, len(w.api.Writes("d/p"))-writes)
						w.pass(9 * time.Minute)
						updates := s.updates(seen)
						if len(updates) == 0 || !told(updates[0]) {
							w.Errorf("%s: the provider was given %v, want the change", what, updates)
						}
						if got := len(w.api.Writes("d/p")) - writes; len(updates) > 3 || got > 5 {
							w.Errorf("%s: %d UpdatePods and %d writes in ten minutes, want at most 3 and 5", what, len(updates), got)
						}
						most, changes = max(most, len(updates)), changes+1
						seen, writes = seen+len(updates), len(w.api.Writes("d/p"))
						if got, want := w.api.Pod("d", "p").Annotations[tt.key], wrote(seen); got != want {
							w.Errorf("%s: the provider's annotation is %q in the API server, want %q", what, got, want)
						}
					}
					relabel := func(value string) {
						w.Helper()
						w.api.Change("d", "p", func(p *corev1.Pod) { p.Labels = map[string]string{"user": value} })
						expect("label "+value, func(m metadata) bool { return m.labels["user"] == value })
					}
					annotate := func(key, value string) {
						w.Helper()
						w.api.Change("d", "p", func(p *corev1.Pod) { setAnnotation(p, key, value) })
						expect(key+" set to "+value, func(m metadata) bool { return m.annotations[key] == value })
					}
					w.start()
					p := bound("p", "a")
					p.Annotations = map[string]string{"user": "0", "other": "0"}
					w.api.Create(p)
					w.pass(time.Minute)
					writes = len(w.api.Writes("d/p"))
					relabel("1")
					relabel("2")
					relabel("1") // as before, and as in the last report but one
					annotate(tt.key, "a user's")
					annotate(tt.key, wrote(seen-1)) // a value that the provider had before
					w.api.Change("d", "p", func(p *corev1.Pod) { delete(p.Annotations, "other") })
					expect("other removed", func(m metadata) bool { _, has := m.annotations["other"]; return !has })
					w.api.Change("d", "p", func(p *corev1.Pod) { delete(p.Annotations, tt.key) })
					expect(tt.key+" removed", func(m metadata) bool { _, has := m.annotations[tt.key]; return !has })

					w.halt()
					w.start()
					w.pass(10 * time.Minute)
					if again, got := s.updates(seen), len(w.api.Writes("d/p"))-writes; len(again) > 0 || got > 0 {
						w.Errorf("%d UpdatePods and %d writes after a restart, want none", len(again), got)
					}
					relabel("3")
					annotate(tt.key, "a user's again")
				}, func(cfg *PodControllerConfig) { s.Notifying = cfg.Provider.(memory.Notifying); cfg.Provider = s })
			})
		}
	}
	faultrow.Record(t, 56, "a provider that adds, changes or replaces an annotation at every UpdatePod, within the call or 3 s later; 9 changes by users, of labels and annotations, of the provider's too, and a restart",
		"at most %d UpdatePods in ten minutes and %d writes in a minute after each of %d changes, all of which arrived", most, mostWrites, changes)
}
