// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// double stands in for Nomad: it stores jobs and Variables, and runs nothing.
type double struct {
	mu        sync.Mutex
	index     uint64
	jobs      map[string]*nomadapi.Job
	variables map[string]*nomadapi.Variable
	allocs    []*nomadapi.Allocation
	asked     []string // requests
	leader    string
	lose      string           // the beginnings of requests that take effect and get no answer
	fail      map[string]int   // status codes of requests that take no effect, by the beginnings of the requests
	instead   http.HandlerFunc // answers all requests if it is set
}

// openDouble returns a double, and a provider of the double without background work.
func openDouble(t *testing.T, o objects) (*double, *provider) {
	t.Helper()
	d := &double{index: 10, jobs: map[string]*nomadapi.Job{}, variables: map[string]*nomadapi.Variable{}, fail: map[string]int{}, leader: "127.0.0.1:4647"}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	p := newProvider(t, testConfig(t, func(c *Config) { c.Address = server.URL }), o)
	p.d.place = place{mhz: 1000, clients: 1}
	p.d.placeError = nil
	close(p.d.known)
	p.d.take(t.Context(), listed{})
	p.d.setOutdated(&p.d.down, nil)
	return d, p
}

// provider is a service provider together with its driver.
type provider struct {
	*service.Provider[*instance]
	d *driver
}

func newProvider(t *testing.T, c Config, o objects) *provider {
	t.Helper()
	c, err := c.complete()
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDriver(cli.ProviderInput{NodeName: "node"}, c)
	if err != nil {
		t.Fatal(err)
	}
	d.provider.UsePodObjects(o)
	d.provider.UsePodTokens(o)
	return &provider{d.provider, d}
}

// status returns the status of a pod as of the current state of its entry.
func (p *provider) status(e *entry) corev1.PodStatus {
	pod, _, _ := p.Cache().Get(e.pod.UID)
	return p.d.Status(pod, p.d.store.instance(e))
}

// lose lets the provider forget a pod, as after a restart.
func (p *provider) lose(e *entry) {
	p.d.store.mu.Lock()
	defer p.d.store.mu.Unlock()
	p.d.store.remove(e)
	p.Cache().Forget(e.pod.UID)
}

func (d *double) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// items returns a copy of the items of all Variables.
func (d *double) items() map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[string]string{}
	for _, v := range d.variables {
		maps.Copy(all, v.Items)
	}
	return all
}

func (d *double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.instead != nil {
		d.instead(w, r)
		return
	}
	what := r.Method + " " + r.URL.Path
	d.asked = append(d.asked, what)
	for begin, code := range d.fail {
		if strings.HasPrefix(what, begin) {
			http.Error(w, "this fails", code)
			return
		}
	}
	code, out := d.do(r)
	if d.lose != "" && strings.HasPrefix(what, d.lose) {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("X-Nomad-Index", strconv.FormatUint(d.index, 10))
	if text, ok := out.(string); ok {
		http.Error(w, text, code)
		return
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(out)
}

func (d *double) do(r *http.Request) (code int, out any) {
	id, path := strings.TrimPrefix(r.URL.Path, "/v1/job/"), strings.TrimPrefix(r.URL.Path, "/v1/var/")
	switch what := r.Method + " " + r.URL.Path; {
	case what == "PUT /v1/jobs":
		var in nomadapi.JobRegisterRequest
		_ = json.NewDecoder(r.Body).Decode(&in)
		if d.jobs[*in.Job.ID] != nil {
			return http.StatusInternalServerError, nomadapi.RegisterEnforceIndexErrPrefix
		}
		d.index++
		in.Job.CreateIndex, in.Job.JobModifyIndex, in.Job.SubmitTime = ptr.To(d.index), ptr.To(d.index), ptr.To[int64](1)
		d.jobs[*in.Job.ID] = in.Job
		return http.StatusOK, nomadapi.JobRegisterResponse{JobModifyIndex: d.index}
	case what == "GET /v1/jobs":
		stubs := []*nomadapi.JobListStub{}
		for _, j := range d.jobs {
			stubs = append(stubs, &nomadapi.JobListStub{
				ID: *j.ID, Meta: j.Meta, Stop: ptr.Deref(j.Stop, false), CreateIndex: *j.CreateIndex, JobModifyIndex: *j.JobModifyIndex, SubmitTime: *j.SubmitTime,
			})
		}
		return http.StatusOK, stubs
	case what == "GET /v1/status/leader":
		return http.StatusOK, json.RawMessage(strconv.Quote(d.leader))
	case what == "GET /v1/allocations", r.Method == http.MethodGet && strings.HasSuffix(id, "/allocations"):
		return http.StatusOK, slices.Clone(d.allocs)
	case strings.HasPrefix(what, "GET /v1/allocation/"):
		for _, a := range d.allocs {
			if strings.HasSuffix(what, "/"+a.ID) {
				return http.StatusOK, a
			}
		}
		return http.StatusNotFound, "alloc not found"
	case what == "GET /v1/vars":
		list := []*nomadapi.VariableMetadata{}
		for _, v := range d.variables {
			list = append(list, v.Metadata())
		}
		return http.StatusOK, list
	case id != r.URL.Path && d.jobs[id] != nil:
		if r.Method == http.MethodDelete {
			d.index++
			d.jobs[id].Stop, d.jobs[id].JobModifyIndex = ptr.To(true), ptr.To(d.index)
			return http.StatusOK, nomadapi.JobDeregisterResponse{EvalID: "stop", JobModifyIndex: d.index}
		}
		return http.StatusOK, d.jobs[id]
	case path != r.URL.Path && r.Method == http.MethodPut:
		if v := d.variables[path]; v != nil && r.URL.Query().Get("cas") == "0" {
			return http.StatusConflict, v
		}
		var in nomadapi.Variable
		_ = json.NewDecoder(r.Body).Decode(&in)
		d.index++
		in.ModifyIndex = d.index
		d.variables[path] = &in
		return http.StatusOK, in
	case path != r.URL.Path && d.variables[path] != nil:
		v := d.variables[path]
		if cas := r.URL.Query().Get("cas"); cas != "" && cas != strconv.FormatUint(v.ModifyIndex, 10) {
			return http.StatusConflict, v
		}
		if r.Method == http.MethodDelete {
			delete(d.variables, path)
		}
		return http.StatusOK, v
	case id != r.URL.Path:
		return http.StatusNotFound, "job not found"
	case path != r.URL.Path:
		return http.StatusNotFound, "variable not found"
	}
	return http.StatusOK, []string{} // empty lists
}
