// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// ended ends and deletes a pod, so that the provider is due to forget it.
func ended(t *testing.T, p *provider, pod *corev1.Pod, e *entry) {
	t.Helper()
	p.d.store.tell(allocated(e, "x", nomadapi.AllocClientStatusComplete, 20))
	if err := p.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	e.stopEval = ""
}

// TestFailuresGrowApart checks that a failed step of a pod is tried again, with longer and longer pauses.
func TestFailuresGrowApart(t *testing.T) {
	d, p, pod, e := made(t)
	ended(t, p, pod, e)
	d.set(func() { d.fail["DELETE /v1/"] = http.StatusForbidden })
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		do := p.d.due(t.Context(), pod.UID, time.Now().Add(time.Hour))
		if do == nil {
			t.Fatal("what failed is not tried again")
		}
		do()
		if p.d.due(t.Context(), pod.UID, time.Now().Add(want/2)) != nil {
			t.Errorf("what failed is tried again before %s", want)
		}
	}
	d.set(func() { clear(d.fail) })
	p.d.due(t.Context(), pod.UID, time.Now().Add(time.Hour))()
	if p.d.store.pods[pod.UID] != nil {
		t.Error("the pod is not forgotten")
	}
}

// TestFailureDelaysOnlyItsAction: after a failed question for the address of a pod, the stop of a second allocation does not wait.
func TestFailureDelaysOnlyItsAction(t *testing.T) {
	d, p, pod, e := made(t)
	p.d.store.tell(allocated(e, "x", nomadapi.AllocClientStatusRunning, 20))
	d.set(func() { d.fail["GET /v1/allocation/"] = http.StatusInternalServerError })
	p.d.due(t.Context(), pod.UID, time.Now())()
	if p.d.due(t.Context(), pod.UID, time.Now()) != nil {
		t.Error("the failed action is repeated at once")
	}
	p.d.store.tell(allocated(e, "y", nomadapi.AllocClientStatusRunning, 21))
	if p.d.due(t.Context(), pod.UID, time.Now()) == nil {
		t.Error("the stop of the second allocation waits")
	}
}

// TestFailuresAreTriedAgain checks that a failed step is tried again without an event, at the next look at the
// due steps.
func TestFailuresAreTriedAgain(t *testing.T) {
	d, p, pod, e := made(t)
	p.d.store.tell(allocated(e, "x", nomadapi.AllocClientStatusRunning, 20))
	d.set(func() { d.fail["GET /v1/allocation/"] = http.StatusInternalServerError })
	do := p.d.due(t.Context(), pod.UID, time.Now())
	if do == nil {
		t.Fatal("nobody asks for the address of a pod")
	}
	p.d.store.dirty = map[types.UID]bool{}
	do()
	p.d.lookAgain()
	if !p.d.store.dirty[pod.UID] {
		t.Error("a question for an address that failed is not asked again")
	}
	if do = p.d.due(t.Context(), pod.UID, time.Now().Add(time.Hour)); do == nil {
		t.Fatal("a question for an address that failed is not asked again")
	}
	d.set(func() { clear(d.fail) })
	p.d.store.dirty = map[types.UID]bool{}
	if p.d.due(t.Context(), pod.UID, time.Now()) != nil {
		t.Error("two things are done about a pod at the same time")
	}
	do()
	if !p.d.store.dirty[pod.UID] {
		t.Error("what became due meanwhile is forgotten")
	}
}

// TestKillsAreApart checks that the pauses between kill signals grow, that signals delay no other step, and that
// an unreachable client gets none.
func TestKillsAreApart(t *testing.T) {
	_, p, pod, e := made(t)
	p.d.store.tell(allocated(e, "x", nomadapi.AllocClientStatusRunning, 20))
	now := time.Now()
	pod.DeletionGracePeriodSeconds = ptr.To[int64](0)
	if err := p.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		kill := p.d.kill(t.Context(), pod.UID, now)
		if kill == nil {
			t.Fatal("a pod whose grace is over is not killed")
		}
		if p.d.kill(t.Context(), pod.UID, now.Add(time.Hour)) != nil {
			t.Error("a pod is killed while it is being killed")
		}
		if e.busy {
			t.Error("a signal holds up what else is due about the pod")
		}
		kill()
		if p.d.kill(t.Context(), pod.UID, now.Add(want-time.Millisecond)) != nil {
			t.Errorf("a pod is killed again before %s", want)
		}
		now = now.Add(want + time.Millisecond)
	}
	p.d.store.tell(allocated(e, "x", nomadapi.AllocClientStatusUnknown, 30))
	if p.d.kill(t.Context(), pod.UID, now.Add(time.Hour)) != nil {
		t.Error("a signal is sent to a client that is away")
	}
}

// TestDarkNomadIsSeen checks that the node is not healthy while Nomad has no leader or lists fail.
func TestDarkNomadIsSeen(t *testing.T) {
	d, p, _, _ := made(t)
	if err := p.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.set(func() { d.leader = "" })
	if p.Ping(t.Context()) == nil {
		t.Error("Ping without a leader is well")
	}
	d.set(func() { d.leader, d.fail["GET /v1/status/leader"] = "x", http.StatusInternalServerError })
	if p.Ping(t.Context()) == nil {
		t.Error("Ping that no leader answers is well")
	}
	d.set(func() { clear(d.fail); d.fail["GET /v1/evaluations"] = http.StatusInternalServerError })
	for range 2 { // a single failed list is repeated
		if p.d.list(t.Context()) == nil || p.AnswersForAllPods() {
			t.Error("the node answers for pods that cannot be listed")
		}
	}
	if p.Ping(t.Context()) == nil {
		t.Error("the node is well although the pods cannot be listed")
	}
	d.set(func() { clear(d.fail) })
	if p.d.list(t.Context()) != nil || p.Ping(t.Context()) != nil || !p.AnswersForAllPods() {
		t.Error("the node is not well although the pods were listed")
	}
	d.set(func() {
		d.instead = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Nomad-KnownLeader", "false")
			fmt.Fprint(w, "[]")
		}
	})
	if err := p.d.list(t.Context()); err == nil || !strings.Contains(err.Error(), "no leader") {
		t.Errorf("an answer without a leader: got %v, want that there is none", err)
	}
}

// TestFollowedLogsThatFail checks that a final error of a followed log is returned, and that other errors are
// retried with growing pauses.
func TestFollowedLogsThatFail(t *testing.T) {
	d, p, _, e := made(t)
	a := allocated(e, "x", nomadapi.AllocClientStatusRunning, 20)
	p.d.store.tell(a)
	const logs = "GET /v1/client/fs/logs/"
	d.set(func() { d.fail[logs] = http.StatusForbidden })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := logReader{d: p.d, ctx: ctx, jobID: a.JobID, alloc: a.ID, task: "main"}.follow(io.Discard, [2]int64{})
	if err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("logs without the right: got %v, want the 403", err)
	}
	asked := func() (n int) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, what := range d.asked {
			if strings.HasPrefix(what, logs) {
				n++
			}
		}
		return n
	}
	d.set(func() { d.fail[logs], d.asked = http.StatusInternalServerError, nil })
	ctx, cancel = context.WithCancel(t.Context())
	done, began := make(chan struct{}), time.Now()
	go func() {
		_ = logReader{d: p.d, ctx: ctx, jobID: a.JobID, alloc: a.ID, task: "main"}.follow(io.Discard, [2]int64{})
		close(done)
	}()
	if !await(t, func() bool { return asked() >= 8 }) {
		t.Error("logs that fail are not asked for again")
	}
	if took := time.Since(began); took < 1300*time.Millisecond {
		t.Errorf("logs that fail are asked for 4 times in %s", took)
	}
	cancel()
	<-done
}

// TestJobThatOthersStopped checks that a pod has failed if another user stopped its job, and that the stop does
// not make the pod look newer than a later pod of the same name.
func TestJobThatOthersStopped(t *testing.T) {
	d, p, _, e := made(t)
	submitted := e.submitted
	d.set(func() {
		d.index++
		job := d.jobs[e.jobID]
		job.Stop, job.JobModifyIndex, job.SubmitTime = ptr.To(true), ptr.To(d.index), ptr.To(time.Now().Add(time.Hour).UnixNano())
	})
	if err := p.d.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := p.status(e); s.Phase != corev1.PodFailed || s.Reason != reasonStopped {
		t.Errorf("a pod whose job was stopped is %s %s %s", s.Phase, s.Reason, s.Message)
	}
	if !e.submitted.Equal(submitted) {
		t.Error("a stop makes a pod newer")
	}
}

// TestClientsWithoutASpeed checks the error for clients that report no CPU speed.
func TestClientsWithoutASpeed(t *testing.T) {
	_, p := openDouble(t, objects{})
	p.d.place.mhz = 0
	if err := p.CreatePod(t.Context(), keysPod()); err == nil || strings.Contains(err.Error(), "%!") {
		t.Errorf("got %v, want what is wrong", err)
	}
}

// TestStopsAreListedFirst checks that evaluations are listed before allocations, so that the list of allocations
// shows the effects of each completed stop.
func TestStopsAreListedFirst(t *testing.T) {
	d, p, _, _ := made(t)
	if err := p.d.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	if slices.Index(d.asked, "GET /v1/evaluations") > slices.Index(d.asked, "GET /v1/allocations") {
		t.Errorf("asked for %q, want evaluations before allocations", d.asked)
	}
}

// TestStreamThatBreaksAtOnce checks that a stream that is always cut after its first event is opened with
// growing pauses.
func TestStreamThatBreaksAtOnce(t *testing.T) {
	d, p := openDouble(t, objects{})
	streams := 0
	d.set(func() {
		d.instead = func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/event/stream" {
				streams++
				fmt.Fprint(w, "{}")
				return
			}
			fmt.Fprint(w, "[]")
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	done, began := make(chan struct{}), time.Now()
	go func() { p.d.followEvents(ctx); close(done) }()
	opened := func() bool { d.mu.Lock(); defer d.mu.Unlock(); return streams >= 4 }
	if !await(t, opened) {
		t.Error("the stream is not opened again")
	}
	if took := time.Since(began); took < 1300*time.Millisecond {
		t.Errorf("a stream that breaks at once was opened 4 times in %s", took)
	}
	cancel()
	<-done
}

// TestProxyAndCertificates checks that no proxy of the environment is used with configured certificates: the
// proxy would hide them.
func TestProxyAndCertificates(t *testing.T) {
	for files, want := range map[TLS]bool{{}: true, {ServerName: "server.global.nomad"}: false} {
		c, err := newClient(testConfig(t, func(c *Config) { c.Address, c.TLS = "https://nomad.example:4646", files }))
		if err != nil {
			t.Fatal(err)
		}
		if by := c.http.Transport.(*http.Transport).Proxy != nil; by != want || (c.proxy != nil) != want {
			t.Errorf("with %+v a proxy is used: %t, want %t", files, by, want)
		}
	}
}
