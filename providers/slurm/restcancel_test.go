// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurm

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// TestJobThatBeginsIsNotKilled checks that a job keeps its grace period if it begins while the provider cancels
// waiting jobs. Jobs that were held before are cancelled.
func TestJobThatBeginsIsNotKilled(t *testing.T) {
	const head = `{"meta":{},"errors":[]`
	var mu sync.Mutex
	var asked []string
	state, held := map[string]string{"1": "PENDING", "2": "PENDING", "3": "PENDING"}, map[string]bool{}
	r := answering(t, "u", func(request string) string {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, request)
		_, id, _ := strings.Cut(request, "/job/")
		switch {
		case request == "GET /jobs":
			var jobs []string
			for _, id := range []string{"1", "2", "3"} {
				jobs = append(jobs, fmt.Sprintf(`{"job_id":%s,"job_state":%q,"name":"vk-%s","user_name":"u"}`, id, state[id], id))
			}
			if state["2"] == "PENDING" && !held["2"] {
				state["2"] = "RUNNING" // right after the list
			}
			return head + `,"jobs":[` + strings.Join(jobs, ",") + "]}"
		case strings.HasPrefix(request, "POST") && id == "3":
			return `{"meta":{},"errors":[{"error_number":2021,"error":"Job/step already completing or completed"}]}`
		case strings.HasPrefix(request, "POST"):
			if id == "2" {
				state["2"] = "RUNNING" // right before it is held
			}
			held[id] = true
		case strings.HasPrefix(request, "DELETE") && state[id] == "RUNNING":
			t.Errorf("job %s was killed while it ran: %q", id, asked)
		}
		return head + "}"
	})
	_ = r.cancel(t.Context(), []int{1, 2, 3}, whilePending)
	if !slices.Contains(asked, "DELETE /job/1") || slices.Contains(asked, "DELETE /job/3") {
		t.Errorf("asked %q, want that job 1 alone is deleted", asked)
	}
}

// TestJobsAreCancelledSideBySide checks that many jobs are cancelled at a time, but not all at once.
func TestJobsAreCancelledSideBySide(t *testing.T) {
	var mu sync.Mutex
	under, most := 0, 0
	full := make(chan struct{})
	open := sync.OnceFunc(func() { close(full) })
	r := answering(t, "u", func(string) string {
		mu.Lock()
		under++
		if most = max(most, under); most == restCalls {
			open()
		}
		mu.Unlock()
		select {
		case <-full:
		case <-time.After(10 * time.Second): // more requests than this are never under way
			open()
		}
		mu.Lock()
		under--
		mu.Unlock()
		return `{"meta":{},"errors":[]}`
	})
	ids := make([]int, 5*restCalls)
	for i := range ids {
		ids[i] = i + 1
	}
	if err := r.cancel(t.Context(), ids); err != nil || most != restCalls {
		t.Errorf("%d at once, %v, want %d", most, err, restCalls)
	}
}

// TestNoConnectionOutlivesTheProvider checks that the connections to slurmrestd are closed after the rest of the
// provider has ended.
func TestNoConnectionOutlivesTheProvider(t *testing.T) {
	var mu sync.Mutex
	open, all := map[net.Conn]bool{}, 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"meta":{},"errors":[],"jobs":[]}`)
	}))
	server.Config.ConnState = func(c net.Conn, s http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		if s == http.StateNew {
			open[c], all = true, all+1
		} else if s == http.StateClosed {
			delete(open, c)
		}
	}
	server.Start()
	defer server.Close()
	p, _ := listing(t, "exit 1")
	p.slurm, p.pods = newREST(REST{URL: server.URL, User: "u"}, client{}), map[types.UID]*tracked{}
	p.config.FastEvery.Duration, p.config.SlowEvery.Duration = time.Second, time.Second
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = p.RunInBackground(ctx) }()
	if err := p.Cache().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-ended
	await(t, "the connections are to be closed", func() (bool, string) {
		mu.Lock()
		defer mu.Unlock()
		return all > 0 && len(open) == 0, fmt.Sprintf("%d of %d are open", len(open), all)
	})
}

// TestTokenPassesNoProxy checks that a request with plain HTTP uses no proxy, which could read the token.
func TestTokenPassesNoProxy(t *testing.T) {
	for text, want := range map[string]bool{"http://127.0.0.1:6820": false, "unix:///run/slurmrestd": false, "https://slurm.example.org:6820": true} {
		if got := newREST(REST{URL: text}, client{}).http.Transport.(*http.Transport).Proxy != nil; got != want {
			t.Errorf("%s: by a proxy %v, want %v", text, got, want)
		}
	}
}

// TestFlagsThatHaveNoField checks that a flag without a complete counterpart in slurmrestd is refused.
func TestFlagsThatHaveNoField(t *testing.T) {
	for flag, want := range map[string]bool{
		"--hold": true, "--nice=5": true, "--constraint=a": true, "--hold=later": false, "--constraint": false, "--nice": false, "--nice=x": false,
		"--exclusive": false, "--exclusive=user": false,
	} {
		job, err := restJob([]string{flag, endOfFlags, "s", "p", "d"})
		if (err == nil) != want || err != nil && !errdefs.IsInvalidInput(err) {
			t.Errorf("%s: %v, %v", flag, job, err)
		}
	}
}

// TestSlurmrestdGetsTheTimesOfSbatch: a time limit in each form of sbatch is the same number of minutes for slurmrestd.
func TestSlurmrestdGetsTheTimesOfSbatch(t *testing.T) {
	for text, want := range map[string]any{"30": 30, "30:01": 31, "1:30:00": 90, "2-1": 2940, "2-1:05": 2945, "1-0:0:1": 1441, "2800": 2800, "": nil, "x": nil, "1:2:3:4": nil, "-5": nil} {
		for flag, field := range map[string]string{"--time": "time_limit", "--time-min": "time_minimum"} {
			job, err := restJob([]string{flag + "=" + text, endOfFlags, "s", "p", "d"})
			if got := job[field]; got != want || (err == nil) != (want != nil) || err != nil && !errdefs.IsInvalidInput(err) {
				t.Errorf("%s=%s: got %v and %v, want %v", flag, text, got, err, want)
			}
		}
	}
}
