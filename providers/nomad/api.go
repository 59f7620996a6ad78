// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// leaderPatience is the timeout of the request for the leader.
const leaderPatience = 5 * time.Second

// nodesWait is how long a request for clients waits for a change.
const nodesWait = 5 * time.Minute

// errExists is the error if a job with the ID exists already.
var errExists = errors.New("the job exists")

// register creates a job and returns its index. If a job with its ID exists, the error is errExists.
func (c *client) register(ctx context.Context, job *nomadapi.Job) (uint64, error) {
	in := nomadapi.JobRegisterRequest{Job: job, EnforceIndex: true}
	var out nomadapi.JobRegisterResponse
	_, err := c.call(ctx, http.MethodPut, "/v1/jobs", nil, in, &out)
	var answered *answerError
	if errors.As(err, &answered) && strings.Contains(answered.text, nomadapi.RegisterEnforceIndexErrPrefix) {
		return 0, errExists
	}
	if err != nil && answered != nil && answered.code == http.StatusInternalServerError && !answered.foreign && aboutJob(answered.text) {
		return 0, errdefs.AsInvalidInput(err)
	}
	return out.JobModifyIndex, err
}

// aboutJob reports whether the servers refuse the job itself, for which they answer 500.
func aboutJob(text string) bool {
	return strings.Contains(text, "error occurred:") || strings.Contains(text, "errors occurred:") || strings.Contains(text, "nonexistent") ||
		strings.Contains(text, "does not exist")
}

// job returns a job. If there is none, the error is of the kind not-found.
func (c *client) job(ctx context.Context, id string) (*nomadapi.Job, error) {
	var out nomadapi.Job
	_, err := c.call(ctx, http.MethodGet, "/v1/job/"+url.PathEscape(id), nil, nil, &out)
	return &out, err
}

// deregister stops a job. It returns the ID of the evaluation for the stop, or "", and its index.
func (c *client) deregister(ctx context.Context, id string) (eval string, index uint64, err error) {
	out, err := c.remove(ctx, id, false)
	return out.EvalID, out.JobModifyIndex, err
}

// purge makes Nomad forget a stopped job. It returns the index of the purge.
func (c *client) purge(ctx context.Context, id string) (uint64, error) {
	out, err := c.remove(ctx, id, true)
	return out.JobModifyIndex, err
}

func (c *client) remove(ctx context.Context, id string, purge bool) (out nomadapi.JobDeregisterResponse, err error) {
	_, err = c.call(ctx, http.MethodDelete, "/v1/job/"+url.PathEscape(id), query{"purge": {strconv.FormatBool(purge)}}, nil, &out)
	if errdefs.IsNotFound(err) {
		err = nil
	}
	return out, err
}

// variable returns a Variable. If there is none, the error is of the kind not-found.
func (c *client) variable(ctx context.Context, path string) (*nomadapi.Variable, error) {
	var out nomadapi.Variable
	_, err := c.call(ctx, http.MethodGet, "/v1/var/"+path, nil, nil, &out)
	return &out, err
}

// put creates or replaces a Variable.
func (c *client) put(ctx context.Context, v *nomadapi.Variable) error {
	_, err := c.call(ctx, http.MethodPut, "/v1/var/"+v.Path, nil, v, nil)
	return err
}

// errVariable is the error if a Variable with the path exists already.
var errVariable = errors.New("the Variable exists")

// putNew creates a Variable. If a Variable with its path exists, the error is errVariable.
func (c *client) putNew(ctx context.Context, v *nomadapi.Variable) error {
	_, err := c.call(ctx, http.MethodPut, "/v1/var/"+v.Path, query{"cas": {"0"}}, v, nil)
	var answered *answerError
	if errors.As(err, &answered) && answered.code == http.StatusConflict {
		return errVariable // without the text, which contains the Variable
	}
	return err
}

// removeVariable removes a Variable unless it was written after an index; 0 means any index. A missing Variable is no error.
func (c *client) removeVariable(ctx context.Context, path string, index uint64) error {
	q := query{}
	if index > 0 {
		q.Set("cas", strconv.FormatUint(index, 10))
	}
	_, err := c.call(ctx, http.MethodDelete, "/v1/var/"+path, q, nil, nil)
	var answered *answerError
	if errdefs.IsNotFound(err) || errors.As(err, &answered) && answered.code == http.StatusConflict {
		return nil
	}
	return err
}

// variables lists the Variables below a path, without their values.
func (c *client) variables(ctx context.Context, prefix string) (out []*nomadapi.VariableMetadata, err error) {
	_, err = c.call(ctx, http.MethodGet, "/v1/vars", query{"prefix": {prefix}}, nil, &out)
	return out, err
}

// listed has all objects of a node's pods at Nomad.
type listed struct {
	index  uint64 // of the jobs
	jobs   []*nomadapi.JobListStub
	allocs []*nomadapi.Allocation
	evals  []*nomadapi.Evaluation
}

// list requests all jobs with a prefix, their allocations and their evaluations. The allocations have no addresses.
func (c *client) list(ctx context.Context, prefix string) (listed, error) {
	var l listed
	var err error
	if l.index, err = c.call(ctx, http.MethodGet, "/v1/jobs", query{"prefix": {prefix}, "meta": {"true"}}, nil, &l.jobs); err != nil {
		return l, err
	}
	filter := query{"filter": {`JobID matches "^` + prefix + `"`}}
	// Request the evaluations before the allocations, so that the allocations include the results of completed evaluations.
	if _, err = c.call(ctx, http.MethodGet, "/v1/evaluations", filter, nil, &l.evals); err != nil {
		return l, err
	}
	var stubs []*nomadapi.AllocationListStub
	if _, err = c.call(ctx, http.MethodGet, "/v1/allocations", filter, nil, &stubs); err != nil {
		return l, err
	}
	for _, s := range stubs {
		l.allocs = append(l.allocs, &nomadapi.Allocation{
			ID: s.ID, JobID: s.JobID, NodeID: s.NodeID, NodeName: s.NodeName, DesiredStatus: s.DesiredStatus, DesiredDescription: s.DesiredDescription,
			ClientStatus: s.ClientStatus, ClientDescription: s.ClientDescription, TaskStates: s.TaskStates, PreemptedByAllocation: s.PreemptedByAllocation,
			CreateIndex: s.CreateIndex, ModifyIndex: s.ModifyIndex, CreateTime: s.CreateTime, ModifyTime: s.ModifyTime,
		})
	}
	return l, nil
}

// allocation returns an allocation, with its address.
func (c *client) allocation(ctx context.Context, id string) (*nomadapi.Allocation, error) {
	var out nomadapi.Allocation
	_, err := c.call(ctx, http.MethodGet, "/v1/allocation/"+id, nil, nil, &out)
	out.Job = nil
	return &out, err
}

// runs reports whether some allocations of a job have not ended. The job may be gone.
func (c *client) runs(ctx context.Context, id string) (bool, error) {
	var list []*nomadapi.Allocation
	_, err := c.call(ctx, http.MethodGet, "/v1/job/"+url.PathEscape(id)+"/allocations", query{"all": {"true"}}, nil, &list)
	return slices.ContainsFunc(list, func(a *nomadapi.Allocation) bool { return !terminal(a) }), err
}

// signal sends a signal to a task of an allocation, or to all its tasks if task is "".
func (c *client) signal(ctx context.Context, alloc, task, signal string) error {
	_, err := c.call(ctx, http.MethodPut, "/v1/client/allocation/"+alloc+"/signal", nil, nomadapi.AllocSignalRequest{Task: task, Signal: signal}, nil)
	return err
}

// led returns an error if the servers have no leader. Without a leader, Nomad accepts nothing.
func (c *client) led(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaderPatience)
	defer cancel()
	var leader string
	_, err := c.call(ctx, http.MethodGet, "/v1/status/leader", nil, nil, &leader)
	if err == nil && leader == "" {
		err = errNoLeader
	}
	return err
}

// nodes returns the clients after a change since the index, or after a while.
func (c *client) nodes(ctx context.Context, index uint64) (out []*nomadapi.NodeListStub, next uint64, err error) {
	q := query{"resources": {"true"}}
	if index > 0 {
		q.Set("index", strconv.FormatUint(index, 10))
		q.Set("wait", nodesWait.String())
	}
	ctx, cancel := context.WithTimeout(ctx, 2*nodesWait)
	defer cancel()
	next, err = c.once(ctx, http.MethodGet, "/v1/nodes", q, nil, &out)
	return out, next, err
}

// stats returns the usage of an allocation.
func (c *client) stats(ctx context.Context, alloc string) (*nomadapi.AllocResourceUsage, error) {
	var out nomadapi.AllocResourceUsage
	_, err := c.call(ctx, http.MethodGet, "/v1/client/allocation/"+alloc+"/stats", nil, nil, &out)
	return &out, err
}

// terminal reports whether nothing of an allocation runs any more.
func terminal(a *nomadapi.Allocation) bool {
	return a.ClientStatus == nomadapi.AllocClientStatusComplete || a.ClientStatus == nomadapi.AllocClientStatusFailed || a.ClientStatus == nomadapi.AllocClientStatusLost
}

// streamPatience is how long the event stream may be silent. Nomad sends a heartbeat every 30 seconds.
const streamPatience = 45 * time.Second

// event is an event of the stream.
type event struct {
	Topic   string
	Type    string
	Key     string
	Index   uint64
	Payload struct {
		Allocation *nomadapi.Allocation
		Evaluation *nomadapi.Evaluation
	}
}

// events follows the event stream of the namespace. It calls begun when the stream is open, and then each for every event. It returns
// when the stream breaks or is silent, always with an error.
func (c *client) events(ctx context.Context, begun func() error, each func(event)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(streamPatience, func() { cancel(errors.New("the event stream of Nomad is silent")) })
	defer watchdog.Stop()
	answer, err := c.open(ctx, http.MethodGet, "/v1/event/stream", query{"topic": {"Allocation", "Evaluation", "Job"}}, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	decoder := json.NewDecoder(answer.Body)
	for first := true; ; first = false {
		var batch struct{ Events []event }
		if err := decoder.Decode(&batch); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return fmt.Errorf("the event stream of Nomad ended: %w", err)
		}
		watchdog.Reset(streamPatience)
		if first {
			if err := begun(); err != nil {
				return err
			}
			watchdog.Reset(streamPatience)
		}
		for _, e := range batch.Events {
			each(e)
		}
	}
}
