// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// TestShortListAtAStart: the first answer after a restart lacks a pod that runs. It is asked for again before anybody says that it is not there.
func TestShortListAtAStart(t *testing.T) {
	ask := map[string]func(p *provider, pod *corev1.Pod) (bool, error){
		"GetPod": func(p *provider, pod *corev1.Pod) (bool, error) {
			got, err := p.GetPod(t.Context(), pod.Namespace, pod.Name)
			return got != nil && got.UID == pod.UID, err
		},
		"GetPods": func(p *provider, _ *corev1.Pod) (bool, error) {
			list, err := p.GetPods(t.Context())
			return len(list) == 1, err
		},
	}
	for what, has := range ask {
		s, p, pod := newSite(t)
		pod.Status.Phase = corev1.PodRunning
		if err := s.home.Pods.Add(pod); err != nil {
			t.Fatal(err)
		}
		s.jobs[pod.UID], s.hide = 1, true
		for range 2 {
			if got, err := has(p, pod); got || err != nil && !errdefs.IsNotFound(err) {
				t.Errorf("%s: while answers lack it: %t, %v", what, got, err)
			}
		}
		s.set(func(s *site) { s.code[wire.PathStatus] = http.StatusBadGateway })
		if _, err := has(p, pod); err == nil || errdefs.IsNotFound(err) {
			t.Errorf("%s: without an answer: %v, want an error that is not of the kind not found", what, err)
		}
		s.set(func(s *site) { s.code, s.hide = map[string]int{}, false })
		if got, err := has(p, pod); !got || err != nil {
			t.Errorf("%s: when the server tells of it: %t, %v", what, got, err)
		}
		s.set(func(s *site) { s.code[wire.PathStatus] = http.StatusBadGateway })
		if got, err := has(p, pod); !got || err != nil {
			t.Errorf("%s: it is not known any more: %t, %v", what, got, err)
		}
	}
}

// TestWhoIsNotLackedIsNotAskedFor: a pod that nobody has made yet, one that has ended and one that is not at home any more cost no request.
func TestWhoIsNotLackedIsNotAskedFor(t *testing.T) {
	s, p, pod := newSite(t)
	ended, forced := pod.DeepCopy(), pod.DeepCopy()
	ended.Name, ended.UID, ended.Status.Phase = "ended", "u-ended", corev1.PodSucceeded
	forced.Name, forced.UID, forced.Status.Phase = "forced", "u-forced", corev1.PodRunning
	for _, k := range []*corev1.Pod{ended, forced} {
		if err := s.home.Pods.Add(k); err != nil {
			t.Fatal(err)
		}
	}
	line := through(p)
	if list, err := p.GetPods(t.Context()); len(list) != 0 || err != nil {
		t.Fatal(list, err)
	}
	if err := errors.Join(s.home.Pods.Add(pod), s.home.Pods.Delete(forced)); err != nil {
		t.Fatal(err)
	}
	before := len(line.all())
	for _, name := range []string{pod.Name, "ended", "forced"} {
		if _, err := p.GetPod(t.Context(), pod.Namespace, name); !errdefs.IsNotFound(err) {
			t.Errorf("%s: %v, want not found", name, err)
		}
	}
	if _, err := p.GetPods(t.Context()); err != nil || len(line.all()) != before {
		t.Errorf("requests %q, %v, want the first %d", line.all(), err, before)
	}
}

// TestHurriedAnswersLoseNoPod: creates and deletes have the server asked soon. Answers of one moment are one proof: a pod is lost when it was
// missing for a while, and also then it is asked for before it is said to be lost.
func TestHurriedAnswersLoseNoPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, pod := newSite(t)
		if err := errors.Join(s.home.Pods.Add(pod), p.CreatePod(t.Context(), pod)); err != nil {
			t.Fatal(err)
		}
		poll := func() bool {
			if err := p.tracker.poll(t.Context()); err != nil {
				t.Fatal(err)
			}
			return p.tracker.get(pod.UID) != nil
		}
		poll()
		s.set(func(s *site) { s.hide = true })
		begin := time.Now()
		for poll() && time.Since(begin) < time.Minute {
			time.Sleep(soon)
		}
		if took := time.Since(begin); took < missingFor || took > missingFor+time.Second {
			t.Errorf("lost after %s, want %s", took, missingFor)
		}
		if _, err := p.GetPod(t.Context(), pod.Namespace, pod.Name); !errdefs.IsNotFound(err) {
			t.Errorf("lost: %v, want not found", err)
		}
		s.set(func(s *site) { s.hide = false })
		if got, err := p.GetPod(t.Context(), pod.Namespace, pod.Name); err != nil || got.UID != pod.UID {
			t.Errorf("told of again: %v, %v", got, err)
		}
	})
}

// TestNothingIsSaidBeforeAllIsListed: while the node does not know its pods, an answer about them proves nothing.
func TestNothingIsSaidBeforeAllIsListed(t *testing.T) {
	s, p, pod := newSite(t)
	listed := false
	p.in.Listed = func() bool { return listed }
	if list, err := p.GetPods(t.Context()); err == nil {
		t.Errorf("before the pods are listed: %v, want an error", list)
	}
	s.jobs[pod.UID], listed = 1, true
	if err := s.home.Pods.Add(pod); err != nil {
		t.Fatal(err)
	}
	if list, err := p.GetPods(t.Context()); len(list) != 1 || err != nil {
		t.Errorf("when they are listed: %v, %v", list, err)
	}
}
