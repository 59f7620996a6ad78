// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurm

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
)

// answering returns a client of a slurmrestd whose answers the test chooses, by the method and the path below
// the version.
func answering(t *testing.T, user string, answer func(request string) (text string)) *rest {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path[strings.LastIndex(r.URL.Path, "/v0.0.38")+len("/v0.0.38"):]
		_, _ = io.WriteString(w, answer(r.Method+" "+path))
	}))
	t.Cleanup(server.Close)
	return newREST(REST{URL: server.URL, User: user}, client{})
}

// TestAnswerWithoutItsField checks that an answer without the requested field does not count as an empty list or
// a job.
func TestAnswerWithoutItsField(t *testing.T) {
	const head = `{"meta":{},"errors":[]`
	nodes := `,"nodes":[{"name":"n1","cpus":4,"real_memory":100,"state":"idle","partitions":["main"]}]}`
	partitions := `,"partitions":[{"name":"main","state":"UP"}]}`
	answers := map[string]string{}
	r := answering(t, "u", func(request string) string { return answers[request] })
	for _, jobs := range []string{"}", `,"jobs":null}`, `,"job":[]}`, `,"jobs":[{}]}`, `,"jobs":[{"name":"vk-a","user_name":"u"}]}`} {
		answers["GET /jobs"] = head + jobs
		if all, err := r.jobs(t.Context()); err == nil || !strings.Contains(err.Error(), "does not come from slurmrestd") {
			t.Errorf("%s: jobs %v, %v, want an error", jobs, all, err)
		}
	}
	for _, id := range []string{"}", `,"job_id":null}`, `,"job_id":0}`} {
		answers["POST /job/submit"] = head + id
		if n, err := r.submit(t.Context(), []string{"--", "s", "p", "d"}); err == nil || n != 0 || !unclear(err) || !strings.Contains(err.Error(), "does not come from slurmrestd") {
			t.Errorf("%s: a submission gives %d, %v, want an error that leaves open whether there is a job", id, n, err)
		}
	}
	for _, c := range []struct{ partitions, nodes string }{{"}", nodes}, {`,"partitions":null}`, nodes}, {partitions, "}"}, {partitions, `,"nodes":null}`}} {
		answers["GET /partitions"], answers["GET /nodes"] = head+c.partitions, head+c.nodes
		if machines, up, err := r.partition(t.Context(), "main"); err == nil || !strings.Contains(err.Error(), "does not come from slurmrestd") {
			t.Errorf("%s and %s: %v, %v, %v, want an error", c.partitions, c.nodes, machines, up, err)
		}
	}
	answers["GET /jobs"], answers["POST /job/submit"] = head+`,"jobs":[]}`, head+`,"job_id":5}`
	answers["GET /partitions"], answers["GET /nodes"] = head+partitions, head+nodes
	if all, err := r.jobs(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("no jobs: %v, %v", all, err)
	}
	if n, err := r.submit(t.Context(), []string{"--", "s", "p", "d"}); err != nil || n != 5 {
		t.Errorf("job 5: %d, %v", n, err)
	}
	if machines, up, err := r.partition(t.Context(), "main"); err != nil || len(machines) != 1 || !up {
		t.Errorf("a partition: %v, %v, %v", machines, up, err)
	}
}

// TestJobsWhoseUserHasNoName checks that a job is ours by the name or the number of its user, and that a job
// that may be ours is never silently left out.
func TestJobsWhoseUserHasNoName(t *testing.T) {
	text := ""
	r := answering(t, "vk", func(string) string { return `{"meta":{},"errors":[],"jobs":[` + text + `]}` })
	uid := os.Geteuid()
	for _, c := range []struct {
		name, user string
		uid, want  int // -1 is an error
	}{
		{"vk-a", "vk", uid, 1}, {"vk-a", "vk", uid + 1, 1}, {"vk-a", "nobody", uid, 1}, {"vk-a", "vk@example.org", uid, 1}, {"vk-a", "", uid, 1},
		{"vk-a", "nobody", uid + 1, -1}, {"vk-a", "", uid + 1, -1}, {"vk-a", strconv.Itoa(uid + 1), uid + 1, -1},
		{"vk-a", "other", uid + 1, 0}, {"vk-a", "nobody", 65534, 0}, {"job", "nobody", uid + 1, 0},
	} {
		text = fmt.Sprintf(`{"job_id":7,"job_state":"RUNNING","name":%q,"user_name":%q,"user_id":%d}`, c.name, c.user, c.uid)
		all, err := r.jobs(t.Context())
		if got := len(all); (err != nil) != (c.want < 0) || err == nil && got != c.want {
			t.Errorf("%s: got %v, %v, want %d", text, all, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), "job 7") {
			t.Errorf("the error names no job: %v", err)
		}
	}
}
