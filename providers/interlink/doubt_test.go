// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// TestDoubtOutlivesAnEmptyAnswer checks a server that fails after a submission and does not report the job yet.
// The pod is neither submitted again nor called gone until the plugin has had time to report it.
func TestDoubtOutlivesAnEmptyAnswer(t *testing.T) {
	for _, code := range []int{http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusAccepted, http.StatusConflict} {
		atSite(t, func(t *testing.T, s *site, p *provider, pod *corev1.Pod) { doubtOutlives(t, s, p, pod, code) })
	}
}

func doubtOutlives(t *testing.T, s *site, p *provider, pod *corev1.Pod, code int) {
	s.set(func(s *site) { s.hide, s.code[wire.PathCreate] = true, code })
	if err := p.CreatePod(t.Context(), pod); err == nil {
		t.Fatal("it has succeeded")
	}
	s.set(func(s *site) { delete(s.code, wire.PathCreate) })
	if code == http.StatusConflict { // a refusal leaves no doubt
		if err := p.CreatePod(t.Context(), pod); err != nil || s.jobs[pod.UID] != 2 {
			t.Errorf("after a refusal: %v", err)
		}
		return
	}
	for what, do := range map[string]func() error{
		"create": func() error { return p.CreatePod(t.Context(), pod) },
		"delete": func() error { return p.DeletePod(t.Context(), pod) },
	} {
		err := do()
		if _, says := errdefs.RetryAfterOf(err); !says || errdefs.IsNotFound(err) || s.jobs[pod.UID] != 1 {
			t.Errorf("%d, then %s: %v, %d jobs", code, what, err, s.jobs[pod.UID])
		}
	}
	if code == http.StatusBadGateway { // the next answer reports the job
		s.set(func(s *site) { s.hide = false })
		if err := p.CreatePod(t.Context(), pod); err != nil || s.jobs[pod.UID] != 1 {
			t.Errorf("seen: %v, %d jobs", err, s.jobs[pod.UID])
		}
		return
	}
	after(unseenFor)
	if err := p.DeletePod(t.Context(), pod); !errdefs.IsNotFound(err) {
		t.Errorf("deleted when there is no doubt any more: %v", err)
	}
	if err := p.CreatePod(t.Context(), pod); err != nil || s.jobs[pod.UID] != 2 {
		t.Errorf("created when there is no doubt any more: %v", err)
	}
}

// TestAnswerWithoutAJobIsDoubted checks a create that is answered with 200 but without the pod. There may be a
// job, so the provider looks for it, and submits nothing again before the plugin has had time to report it.
func TestAnswerWithoutAJobIsDoubted(t *testing.T) {
	for _, body := range []string{"{}", "null", "[]", `{"error":"quota"}`, `{"PodUID":"of-another"}`, "<html>"} {
		atSite(t, func(t *testing.T, s *site, p *provider, pod *corev1.Pod) {
			s.set(func(s *site) { s.answer, s.hide = body, true })
			want := body
			if body == `{"PodUID":"of-another"}` || body == "<html>" {
				want = ""
			}
			err := p.CreatePod(t.Context(), pod)
			if _, says := errdefs.RetryAfterOf(err); !says || !strings.Contains(err.Error(), want) || p.get(pod.UID) != nil {
				t.Errorf("%s: %v, known: %t", body, err, p.get(pod.UID) != nil)
			}
			s.set(func(s *site) { s.answer = "" })
			if err := p.CreatePod(t.Context(), pod); err == nil || s.jobs[pod.UID] != 1 {
				t.Errorf("%s, then again: %v, %d jobs", body, err, s.jobs[pod.UID])
			}
			s.set(func(s *site) { s.hide = false })
			if err := p.CreatePod(t.Context(), pod); err != nil || s.jobs[pod.UID] != 1 {
				t.Errorf("%s, and told of: %v, %d jobs", body, err, s.jobs[pod.UID])
			}
		})
	}
}

// TestLostAnswerIsFoundBesideOtherPods has a plugin that repeats its last answer, about the pods of the node's
// last request. The request of each second must therefore include a pod whose create had no answer.
func TestLostAnswerIsFoundBesideOtherPods(t *testing.T) {
	inMode(t, "", func(t *testing.T, f *outside) {
		p, _ := f.start()
		first, second := f.pod("m1", "6000"), f.pod("m2", "6000")
		f.create(p, first)
		f.UntilRuns(p, first)
		through(p).set(func(l *line) { l.lose = true })
		if err := f.Pods.Add(second); err != nil {
			t.Fatal(err)
		}
		if err := p.CreatePod(t.Context(), second.DeepCopy()); err == nil {
			t.Fatal("the answer was not lost")
		}
		begin := time.Now()
		f.again("create m2", func() error {
			time.Sleep(700 * time.Millisecond) // never at the time of the request for all pods
			return p.CreatePod(t.Context(), second.DeepCopy())
		})
		if took := time.Since(begin); took > 3*keptFor {
			t.Errorf("found after %s", took)
		}
		f.UntilRuns(p, second)
		if n := f.plugin.submitted(second.UID); n != 1 {
			t.Errorf("%d jobs were submitted", n)
		}
	})
}
