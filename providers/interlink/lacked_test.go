// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// TestShortListAtAStart checks a running pod that is missing from the first answers after a restart. The node
// asks again, and finds the pod once the server reports it.
func TestShortListAtAStart(t *testing.T) {
	ask := map[string]func(t *testing.T, p *provider, pod *corev1.Pod) (bool, error){
		"GetPod": func(t *testing.T, p *provider, pod *corev1.Pod) (bool, error) {
			got, err := p.GetPod(t.Context(), pod.Namespace, pod.Name)
			return got != nil && got.UID == pod.UID, err
		},
		"GetPods": func(t *testing.T, p *provider, _ *corev1.Pod) (bool, error) {
			list, err := p.GetPods(t.Context())
			return len(list) == 1, err
		},
	}
	for what, has := range ask {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t)
			pod := s.home.Pod("default", "web", stays())
			s.add(pod)
			s.jobs[pod.UID], s.hide = 1, true
			p := s.provider(t)
			if got, err := has(t, p, pod); got || errdefs.IsNotFound(err) {
				t.Errorf("%s: while a plugin may repeat an answer of before: %t, %v", what, got, err)
			}
			for i := range 20 {
				p.answer()
				if got, err := has(t, p, pod); got || err != nil && i > 10 && !errdefs.IsNotFound(err) {
					t.Errorf("%s: while answers lack it: %t, %v", what, got, err)
				}
			}
			s.set(func(s *site) { s.code[wire.PathStatus] = http.StatusBadGateway })
			p.answer()
			if _, err := has(t, p, pod); err == nil || errdefs.IsNotFound(err) {
				t.Errorf("%s: without an answer: %v, want an error that is not of the kind not found", what, err)
			}
			s.set(func(s *site) { s.code, s.hide = map[string]int{}, false })
			time.Sleep(10 * DefaultStatusInterval)
			if got, err := has(t, p, pod); !got || err != nil {
				t.Errorf("%s: when the server tells of it: %t, %v", what, got, err)
			}
			s.set(func(s *site) { s.code[wire.PathStatus] = http.StatusBadGateway })
			time.Sleep(10 * DefaultStatusInterval)
			if got, err := p.GetPod(t.Context(), pod.Namespace, pod.Name); got == nil || err != nil {
				t.Errorf("it is not known any more: %v, %v", got, err)
			}
		})
	}
}

// TestWhoIsNotLackedIsNotAskedFor checks that three kinds of pods cost no request: not created yet, ended, and
// no longer in the cluster.
func TestWhoIsNotLackedIsNotAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		pod := s.home.Pod("default", "web", stays())
		ended, forced := pod.DeepCopy(), pod.DeepCopy()
		ended.Name, ended.UID = "ended", "u-ended"
		forced.Name, forced.UID = "forced", "u-forced"
		s.add(ended)
		s.add(forced)
		ended.Status.Phase = corev1.PodSucceeded
		p := s.provider(t)
		if list, err := p.GetPods(t.Context()); len(list) != 0 || err != nil {
			t.Fatal(list, err)
		}
		if err := errors.Join(s.home.Pods.Add(pod), s.home.Pods.Delete(forced)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(keptFor)
		before := s.asked()
		time.Sleep(time.Minute)
		for _, name := range []string{pod.Name, "ended", "forced"} {
			if _, err := p.GetPod(t.Context(), pod.Namespace, name); !errdefs.IsNotFound(err) {
				t.Errorf("%s: %v, want not found", name, err)
			}
		}
		if _, err := p.GetPods(t.Context()); err != nil || s.asked() != before {
			t.Errorf("%d requests, %v, want none", s.asked()-before, err)
		}
	})
}

// TestHurriedAnswersLoseNoPod checks that several answers of one moment count as one proof, as creates and
// deletes hurry the next request. A pod is lost only after it was missing for a while. The node still asks for
// it then, and finds it once the server reports it.
func TestHurriedAnswersLoseNoPod(t *testing.T) {
	atSite(t, func(t *testing.T, s *site, p *provider, pod *corev1.Pod) {
		if err := p.CreatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		p.answer()
		s.add(pod)
		s.set(func(s *site) { s.hide = true })
		begin := time.Now()
		for p.get(pod.UID) != nil && time.Since(begin) < time.Minute {
			p.Cache().Hurry()
			time.Sleep(soon)
		}
		if took := time.Since(begin); took < missingFor || took > missingFor+2*time.Second {
			t.Errorf("lost after %s, want %s", took, missingFor)
		}
		if _, err := p.GetPod(t.Context(), pod.Namespace, pod.Name); !errdefs.IsNotFound(err) {
			t.Errorf("lost: %v, want not found", err)
		}
		s.set(func(s *site) { s.hide = false })
		p.answer()
		if got, err := p.GetPod(t.Context(), pod.Namespace, pod.Name); err != nil || got.UID != pod.UID {
			t.Errorf("told of again: %v, %v", got, err)
		}
	})
}

// TestNothingIsSaidBeforeAllIsListed checks that an answer about pods proves nothing until the node knows its
// own pods.
func TestNothingIsSaidBeforeAllIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		var listed atomic.Bool
		in := s.home.Input()
		in.Listed = listed.Load
		p := s.run(t, in)
		if list, err := p.GetPods(t.Context()); err == nil {
			t.Errorf("before the pods are listed: %v, want an error", list)
		}
		pod := s.home.Pod("default", "web", stays())
		s.add(pod)
		s.set(func(s *site) { s.jobs[pod.UID] = 1 })
		listed.Store(true)
		if list, err := p.GetPods(t.Context()); len(list) != 1 || err != nil {
			t.Errorf("when they are listed: %v, %v", list, err)
		}
	})
}
