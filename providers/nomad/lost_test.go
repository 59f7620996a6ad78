// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"net/http"
	"sync"
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// TestLostAnswerLosesNoJob checks that a job whose submission had no answer is stopped with its pod, and that
// not-found is returned only if there is no job.
func TestLostAnswerLosesNoJob(t *testing.T) {
	d, p := openDouble(t, objects{secret: map[string][]byte{"a": []byte("1")}})
	pod := keysPod()
	id := p.d.store.owner.jobID(string(pod.UID))
	d.set(func() { d.lose = "PUT /v1/jobs" })
	if err := p.CreatePod(t.Context(), pod); err == nil {
		t.Fatal("CreatePod went well, although the answer was lost")
	}
	if len(p.d.relist) == 0 {
		t.Error("no list is asked for, although the job may be there")
	}
	d.set(func() { d.lose, d.fail["GET /v1/job/"] = "", http.StatusInternalServerError })
	if err := p.DeletePod(t.Context(), pod); err == nil || errdefs.IsNotFound(err) {
		t.Errorf("DeletePod while Nomad does not say whether there is a job: got %v, want an error of no kind", err)
	}
	d.set(func() { clear(d.fail) })
	if err := p.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if d.mu.Lock(); d.jobs[id].Stop == nil || len(d.variables) != 1 {
		t.Error("the job runs on, or has lost its Variable")
	}
	d.jobs = nil
	d.mu.Unlock()
	if e := p.d.store.pods[pod.UID]; e == nil || len(e.variables) != 1 || !e.stopping {
		t.Errorf("the pod that stops is known as %+v", e)
	}
	if err := p.DeletePod(t.Context(), keysPod()); !errdefs.IsNotFound(err) {
		t.Errorf("DeletePod of a pod without a job: got %v, want not-found", err)
	}
}

// TestVariablesOfRefusedJobs checks that a Variable is removed only if Nomad refused the job.
func TestVariablesOfRefusedJobs(t *testing.T) {
	for code, want := range map[int]int{http.StatusForbidden: 0, http.StatusBadRequest: 0, http.StatusTooManyRequests: 1, http.StatusServiceUnavailable: 1, http.StatusInternalServerError: 1} {
		d, p := openDouble(t, objects{secret: map[string][]byte{"a": []byte("1")}})
		d.set(func() { d.fail["PUT /v1/jobs"] = code })
		if err := p.CreatePod(t.Context(), keysPod()); err == nil {
			t.Fatal("CreatePod went well")
		}
		if d.mu.Lock(); len(d.variables) != want {
			t.Errorf("%d: %d Variables are left, want %d", code, len(d.variables), want)
		}
		d.mu.Unlock()
	}
}

// TestJobThatNobodyKnows checks that the event of an unknown job of this node asks for a list. The list that
// adopts the job asks for one more list, because earlier events of the job were ignored.
func TestJobThatNobodyKnows(t *testing.T) {
	s := newStore(testOwner)
	job := stub(t, "a", 5)
	for key, want := range map[string]bool{job.ID: true, "another": false} {
		if got := s.event(event{Topic: "Job", Type: "JobRegistered", Key: key}); got != want {
			t.Errorf("the event of job %s asks for a list: %t, want %t", key, got, want)
		}
	}
	l := listed{index: 6}
	l.jobs = append(l.jobs, job)
	added, _ := s.merge(l)
	again, _ := s.merge(l)
	if !added || again || s.event(event{Topic: "Job", Type: "JobRegistered", Key: job.ID}) {
		t.Error("want the first list to tell of a job, and no more after it")
	}
}

// TestListFromBeforeAStop checks that a list from before a stop request does not mark the stop as finished,
// although the list lacks its evaluation; a newer list does.
func TestListFromBeforeAStop(t *testing.T) {
	d, p := openDouble(t, objects{secret: map[string][]byte{"a": []byte("1")}})
	pod := keysPod()
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	before, err := p.d.client.list(t.Context(), p.d.store.owner.prefix())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	p.d.store.merge(before)
	if e := p.d.store.pods[pod.UID]; e == nil || e.stopEval != "stop" {
		t.Errorf("after a list from before the stop the pod is %+v", e)
	}
	before.index = d.index
	p.d.store.merge(before)
	if e := p.d.store.pods[pod.UID]; e == nil || e.stopEval != "" {
		t.Errorf("after a list that does not have the evaluation any more the pod is %+v", e)
	}
}

// TestPodsAreLookedAtWhileTheyChange runs concurrent reads and changes for the race detector.
func TestPodsAreLookedAtWhileTheyChange(t *testing.T) {
	_, p := openDouble(t, objects{secret: map[string][]byte{"a": []byte("1")}})
	pod := keysPod()
	var running sync.WaitGroup
	done := make(chan struct{})
	for _, f := range []func(){
		func() { // as the background work does
			p.d.store.mu.Lock()
			defer p.d.store.mu.Unlock()
			for _, e := range p.d.store.pods {
				_ = len(e.variables) > 0 || e.failed.wait > 0
			}
		},
		func() { _ = p.UpdatePod(t.Context(), pod) },
	} {
		running.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					f()
				}
			}
		})
	}
	for range 20 {
		pod := keysPod()
		if err := p.CreatePod(t.Context(), pod); err != nil {
			t.Error(err)
		}
		running.Go(func() { _ = p.UpdatePod(t.Context(), pod) })
		if err := p.renew(t.Context(), pod); err != nil {
			t.Error(err)
		}
		running.Go(func() { _ = p.UpdatePod(t.Context(), pod) })
		if err := p.DeletePod(t.Context(), pod); err != nil {
			t.Error(err)
		}
	}
	close(done)
	running.Wait()
}

// TestPodIsGivenUp checks a pod whose client stays away. After lostAfter its job is stopped and the pod has failed, whatever the later
// state of its allocation.
func TestPodIsGivenUp(t *testing.T) {
	d, p := openDouble(t, objects{secret: map[string][]byte{"a": []byte("1")}})
	pod := keysPod()
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	e, began := p.d.store.pods[pod.UID], time.Now()
	a := alloc(nomadapi.AllocClientStatusUnknown, task1("running", started(1)))
	a.CreateIndex = e.index
	p.d.store.mu.Lock()
	p.d.store.allocation(e, a)
	p.d.store.mu.Unlock()
	if p.d.due(t.Context(), pod.UID, began.Add(p.d.config.LostAfter.Duration-time.Second)) != nil || e.over() {
		t.Error("the pod is given up before its time")
	}
	do := p.d.due(t.Context(), pod.UID, began.Add(p.d.config.LostAfter.Duration+time.Second))
	if do == nil {
		t.Fatal("the pod is not given up after its time")
	}
	do()
	if job := d.jobs[e.jobID]; job.Stop == nil || !*job.Stop || !e.over() {
		t.Errorf("the job of the pod is %+v, and the pod is over: %t", job, e.over())
	}
	for _, becomes := range []string{nomadapi.AllocClientStatusUnknown, nomadapi.AllocClientStatusRunning, nomadapi.AllocClientStatusComplete} {
		a.ClientStatus = becomes
		if s := p.status(e); s.Phase != corev1.PodFailed || s.Reason != reasonNodeLost {
			t.Errorf("the pod is %s with the reason %s while its allocation is %s", s.Phase, s.Reason, becomes)
		}
		if e.over() != (becomes != nomadapi.AllocClientStatusRunning) {
			t.Errorf("while its allocation is %s the pod is over: %t", becomes, e.over())
		}
	}
}
