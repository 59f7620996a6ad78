// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
)

// entry is the known state of a pod.
type entry struct {
	pod       identity.Pod
	jobID     string
	variables []string      // paths
	grace     time.Duration // of the spec; 0: unknown
	submitted time.Time
	index     uint64 // of the job; an older list says nothing about the job
	born      uint64 // the index at which the job was made: older objects belong to an earlier job
	hidden    bool   // the job is being submitted
	sent      bool   // the job was submitted; owned by Create

	allocs    map[string]*nomadapi.Allocation
	awaySince time.Time // when the loss of a client was first seen, by the clock of this process
	blocked   *nomadapi.Evaluation

	asked    bool      // the request to stop the job is under way
	deleted  bool      // the pod is being deleted: until then Nomad keeps the ended job
	stopping bool      // Nomad has accepted the stop
	halted   bool      // another client has stopped the job, or an earlier process
	purged   bool      // another client purged the job while it still ran
	endsBy   time.Time // when the tasks must have ended, if Nomad forgot the allocations and will not report their end
	stopEval string    // the evaluation of the stop; "" after its end
	evals    []string  // ended evaluations: the stream may be faster than the answer with the ID of the evaluation
	killAt   time.Time // zero: the client kills
	lost     bool      // the client was away for too long
	busy     bool      // a request about the pod is under way
	skipped  bool      // something else may have become due meanwhile
	failed   failure   // of the last request
	killing  bool      // a signal is under way
	killWait time.Duration
	askedIP  string // the allocation whose address was requested
}

// first returns the allocation that is the pod, and whether Nomad made others.
func (e *entry) first() (a *nomadapi.Allocation, moved bool) {
	for _, b := range e.allocs {
		if a == nil || b.CreateIndex < a.CreateIndex {
			a = b
		}
	}
	return a, len(e.allocs) > 1
}

// failure has the failed action for a pod, the time of its next try, and the last delay.
type failure struct {
	action string
	at     time.Time
	wait   time.Duration
}

// away returns the allocation whose client is away, or "".
func (e *entry) away() string {
	for id, a := range e.allocs {
		if a.ClientStatus == nomadapi.AllocClientStatusUnknown {
			return id
		}
	}
	return ""
}

// done reports whether an evaluation is over.
func (e *entry) done(eval string) bool { return slices.Contains(e.evals, eval) }

// over reports whether nothing of the pod runs.
func (e *entry) over() bool {
	if !e.endsBy.IsZero() {
		return time.Now().After(e.endsBy)
	}
	for _, a := range e.allocs {
		if !terminal(a) && !(e.lost && a.ClientStatus == nomadapi.AllocClientStatusUnknown) {
			return false
		}
	}
	return true
}

// store holds the pods of the node. Its methods take the lock, unless their comment states otherwise.
type store struct {
	owner owner

	mu     sync.Mutex
	pods   map[types.UID]*entry
	byJob  map[string]*entry
	purged map[string]uint64 // deleted jobs, with the index of their deletion
	dirty  map[types.UID]bool
	wake   chan struct{}
	hosts  map[string]string // addresses of clients, by ID
}

func newStore(o owner) *store {
	return &store{
		owner: o, pods: map[types.UID]*entry{}, byJob: map[string]*entry{}, purged: map[string]uint64{}, dirty: map[types.UID]bool{},
		wake: make(chan struct{}, 1), hosts: map[string]string{},
	}
}

// touch marks a pod as changed. The caller holds the lock.
func (s *store) touch(e *entry) {
	s.dirty[e.pod.UID] = true
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// add adds an entry. The caller holds the lock.
func (s *store) add(e *entry) {
	e.allocs = map[string]*nomadapi.Allocation{}
	s.pods[e.pod.UID], s.byJob[e.jobID] = e, e
	s.touch(e)
}

// remove removes an entry. The caller holds the lock.
func (s *store) remove(e *entry) {
	delete(s.pods, e.pod.UID)
	delete(s.byJob, e.jobID)
	delete(s.dirty, e.pod.UID)
}

// instance returns the known state of a pod now. The caller holds the lock.
func (s *store) instance(e *entry) *instance {
	a, moved := e.first()
	i := &instance{pod: e.pod, jobID: e.jobID, seen: seen{submitted: e.submitted, alloc: a, moved: moved, lost: e.lost, halted: e.halted && !e.stopping, blocked: e.blocked}}
	if a != nil {
		i.hostIP = s.hosts[a.NodeID]
	}
	return i
}

// instances returns the instances of all pods, except pods that are being submitted.
func (s *store) instances() []*instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*instance, 0, len(s.pods))
	for _, e := range s.pods {
		if !e.hidden {
			all = append(all, s.instance(e))
		}
	}
	return all
}

// podOf returns the pod of a job, and false if the job belongs to another owner.
func (o owner) podOf(job *nomadapi.JobListStub) (identity.Pod, bool) {
	m := job.Meta
	return identity.Pod{Namespace: m[metaNamespace], Name: m[metaName], UID: types.UID(m[metaUID])},
		m[metaCluster] == o.cluster && m[metaNode] == o.node && job.ID == o.jobID(m[metaUID])
}

// event applies an event of the stream, and reports whether a list is needed.
func (s *store) event(v event) (list bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case v.Payload.Allocation != nil:
		if e := s.byJob[v.Payload.Allocation.JobID]; e != nil {
			s.allocation(e, v.Payload.Allocation)
		}
	case v.Payload.Evaluation != nil:
		if e := s.byJob[v.Payload.Evaluation.JobID]; e != nil {
			s.evaluation(e, v.Payload.Evaluation)
		}
	case v.Topic == "Job" && v.Type == "JobDeregistered":
		e := s.byJob[v.Key]
		return e != nil && !e.asked && !e.stopping
	case v.Topic == "Job" && v.Type == "JobRegistered": // for a job whose create had no answer
		return s.byJob[v.Key] == nil && strings.HasPrefix(v.Key, s.owner.prefix())
	}
	return false
}

// bear records when the job of an entry was created, and forgets the data of an earlier job. The caller holds
// the lock.
func (s *store) bear(e *entry, born uint64) {
	e.born = born
	maps.DeleteFunc(e.allocs, func(_ string, a *nomadapi.Allocation) bool { return a.CreateIndex < born })
	if e.blocked != nil && e.blocked.CreateIndex < born {
		e.blocked = nil
	}
}

// allocation applies an allocation unless a newer state is known. The caller holds the lock.
func (s *store) allocation(e *entry, a *nomadapi.Allocation) {
	if a.CreateIndex < e.born {
		return
	}
	old := e.allocs[a.ID]
	if old != nil && (old.ModifyIndex > a.ModifyIndex || old.ModifyIndex == a.ModifyIndex && a.NetworkStatus == nil) {
		return
	}
	a.Job, a.Metrics, a.TaskResources, a.Resources, a.AllocatedResources = nil, nil, nil, nil, nil
	if old != nil && a.NetworkStatus == nil {
		a.NetworkStatus = old.NetworkStatus
	}
	was := e.away()
	e.allocs[a.ID] = a
	if was == "" && e.away() != "" {
		e.awaySince = time.Now()
	}
	s.touch(e)
}

// evaluation applies an evaluation. The caller holds the lock.
func (s *store) evaluation(e *entry, v *nomadapi.Evaluation) {
	over := v.Status == "complete" || v.Status == "failed" || v.Status == "canceled"
	if over && !e.done(v.ID) {
		e.evals = append(e.evals, v.ID)
	}
	if over && e.stopEval == v.ID {
		e.stopEval = ""
		s.touch(e)
	}
	if v.FailedTGAllocs[group] != nil && v.CreateIndex >= e.born && (e.blocked == nil || e.blocked.ModifyIndex <= v.ModifyIndex) {
		e.blocked = v
		s.touch(e)
	}
}

// merge applies a complete list. It reports whether the list contained unknown pods, and returns the pods that are gone.
func (s *store) merge(l listed) (added bool, gone []types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := map[string]bool{}
	for _, job := range l.jobs {
		pod, ours := s.owner.podOf(job)
		if at, purged := s.purged[job.ID]; !ours || purged && l.index < at {
			continue
		}
		there[job.ID] = true
		e := s.byJob[job.ID]
		if e == nil {
			e = &entry{pod: pod, jobID: job.ID, variables: strings.Fields(job.Meta[metaVariables])}
			s.add(e)
			added = true
		}
		s.bear(e, job.CreateIndex)
		e.index, e.halted = max(e.index, job.JobModifyIndex), job.Stop
		if e.submitted.IsZero() { // a stop changes SubmitTime at Nomad
			e.submitted = time.Unix(0, job.SubmitTime)
		}
	}
	for _, a := range l.allocs {
		if e := s.byJob[a.JobID]; e != nil {
			s.allocation(e, a)
		}
	}
	for _, e := range s.byJob {
		switch {
		case there[e.jobID] || e.hidden || e.index > l.index:
		case e.over():
			s.remove(e)
			gone = append(gone, e.pod.UID)
		default: // its tasks still end
			e.stopping, e.purged = true, true
			if e.endsBy.IsZero() && !slices.ContainsFunc(l.allocs, func(a *nomadapi.Allocation) bool { return a.JobID == e.jobID }) {
				e.endsBy = time.Now().Add(max(e.grace, clientGrace))
			}
		}
	}
	evals := map[string]bool{}
	for _, v := range l.evals {
		evals[v.ID] = true
		if e := s.byJob[v.JobID]; e != nil {
			s.evaluation(e, v)
		}
	}
	for _, e := range s.byJob {
		if e.stopEval != "" && !evals[e.stopEval] && e.index <= l.index {
			e.stopEval = "" // Nomad has forgotten the evaluation, so it has ended
		}
		s.touch(e)
	}
	for id, at := range s.purged {
		if at <= l.index {
			delete(s.purged, id)
		}
	}
	return added, gone
}
