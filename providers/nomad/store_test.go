// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
)

var testOwner = owner{"home", "node"}

// stub returns a job as lists show it.
func stub(t *testing.T, uid string, index uint64) *nomadapi.JobListStub {
	t.Helper()
	pod := testPod()
	r, err := mapping{config: testConfig(t, nil), owner: testOwner}.job(testInputs(pod), 2400)
	if err != nil {
		t.Fatal(err)
	}
	meta := r.job.Meta
	meta[metaUID] = uid
	return &nomadapi.JobListStub{ID: testOwner.jobID(uid), Meta: meta, JobModifyIndex: index, SubmitTime: time.Now().UnixNano()}
}

func (s *store) has(uid string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byJob[s.owner.jobID(uid)] != nil
}

// TestListsAreOfTheirTime checks that a list decides nothing about jobs that were made or purged after it.
func TestListsAreOfTheirTime(t *testing.T) {
	s := newStore(testOwner)
	s.merge(listed{index: 10, jobs: []*nomadapi.JobListStub{stub(t, "old", 5), stub(t, "gone", 6)}})
	if !s.has("old") || !s.has("gone") {
		t.Fatal("the jobs of a list are not there")
	}
	s.mu.Lock()
	s.add(&entry{pod: identity.Pod{UID: "new"}, jobID: testOwner.jobID("new"), index: 12})
	s.add(&entry{pod: identity.Pod{UID: "hidden"}, jobID: testOwner.jobID("hidden"), hidden: true})
	s.purged[testOwner.jobID("gone")] = 13
	s.remove(s.byJob[testOwner.jobID("gone")])
	s.mu.Unlock()
	s.merge(listed{index: 11, jobs: []*nomadapi.JobListStub{stub(t, "old", 5), stub(t, "gone", 6)}})
	if !s.has("new") || !s.has("hidden") || s.has("gone") {
		t.Error("a list from before a job was made, or was purged, was believed")
	}
	s.merge(listed{index: 14})
	if s.has("new") || s.has("old") || !s.has("hidden") || len(s.purged) > 0 {
		t.Error("a list from after that was not believed")
	}
}

// TestJobsOfOthersAreLeft checks that a job with our prefix but another owner in its metadata is not ours.
func TestJobsOfOthersAreLeft(t *testing.T) {
	s := newStore(testOwner)
	other, broken, foreign := stub(t, "a", 1), stub(t, "b", 1), stub(t, "c", 1)
	other.Meta[metaNode] = "another"
	broken.Meta[metaUID] = "another"
	foreign.ID = testOwner.prefix() + "x"
	s.merge(listed{index: 2, jobs: []*nomadapi.JobListStub{other, broken, foreign}})
	if len(s.pods) > 0 {
		t.Errorf("took %d jobs, want none", len(s.pods))
	}
}

// TestStopThatIsOverBeforeItsAnswer checks that the stream may report an evaluation as complete before the
// answer that names the evaluation has come.
func TestStopThatIsOverBeforeItsAnswer(t *testing.T) {
	s := newStore(testOwner)
	s.merge(listed{index: 10, jobs: []*nomadapi.JobListStub{stub(t, "a", 5)}})
	e := s.byJob[testOwner.jobID("a")]
	var v event
	v.Payload.Evaluation = &nomadapi.Evaluation{ID: "stop", JobID: e.jobID, Status: "complete"}
	s.event(v)
	if !e.done("stop") {
		t.Error("an evaluation that was told to be over is waited for")
	}
	if e.done("other") {
		t.Error("an evaluation that nobody told of is not waited for")
	}
}

// TestOldEventsAreNotBelieved checks that an event that is older than the last list changes nothing.
func TestOldEventsAreNotBelieved(t *testing.T) {
	s := newStore(testOwner)
	job := stub(t, "a", 5)
	s.merge(listed{index: 10, jobs: []*nomadapi.JobListStub{job}, allocs: []*nomadapi.Allocation{{ID: "x", JobID: job.ID, ClientStatus: "complete", ModifyIndex: 9}}})
	var v event
	v.Payload.Allocation = &nomadapi.Allocation{ID: "x", JobID: job.ID, ClientStatus: "running", ModifyIndex: 8}
	s.event(v)
	if got := s.byJob[job.ID].allocs["x"].ClientStatus; got != "complete" {
		t.Errorf("the allocation is %s again, want complete", got)
	}
	v = event{Topic: "Job", Type: "JobDeregistered", Key: job.ID}
	if !s.event(v) {
		t.Error("a job that somebody else removed asks for no list")
	}
}
