// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"errors"
	"slices"
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// made creates a pod on a double.
func made(t *testing.T) (*double, *provider, *corev1.Pod, *entry) {
	t.Helper()
	d, p := openDouble(t, objects{secret: map[string][]byte{"a": []byte("1")}})
	pod := keysPod()
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return d, p, pod, p.d.store.pods[pod.UID]
}

// allocated returns an allocation of an entry.
func allocated(e *entry, id, status string, index uint64) *nomadapi.Allocation {
	return &nomadapi.Allocation{
		ID: id, JobID: e.jobID, NodeName: "client-1", ClientStatus: status, DesiredStatus: "run", CreateIndex: index, ModifyIndex: index,
		ModifyTime: time.Now().UnixNano(), TaskStates: task1("running", started(1)),
	}
}

// tell gives the store a copy of an allocation, as the event stream does.
func (s *store) tell(a *nomadapi.Allocation) {
	var v event
	b := *a
	v.Payload.Allocation = &b
	s.event(v)
}

// TestHealthyPodIsNotGivenUp checks that the provider asks again before it gives up a pod, because its knowledge
// may be old, and that it waits while Nomad is away.
func TestHealthyPodIsNotGivenUp(t *testing.T) {
	d, p, pod, e := made(t)
	p.d.store.tell(allocated(e, "x", nomadapi.AllocClientStatusUnknown, 20))
	back := allocated(e, "x", nomadapi.AllocClientStatusRunning, 20)
	back.ModifyIndex = 30
	d.set(func() { d.allocs = append(d.allocs, back) })
	late := time.Now().Add(p.d.config.LostAfter.Duration + time.Minute)
	p.d.setOutdated(&p.d.down, errors.New("the stream is away"))
	if p.d.due(t.Context(), pod.UID, late) != nil {
		t.Error("a pod is given up while nobody knows what became of it")
	}
	p.d.setOutdated(&p.d.down, nil)
	do := p.d.due(t.Context(), pod.UID, late)
	if do == nil {
		t.Fatal("nothing is done about a pod whose time is over")
	}
	do()
	if s := p.status(e); d.jobs[e.jobID].Stop != nil || s.Phase != corev1.PodRunning || s.Reason != "" {
		t.Errorf("a pod whose client is back was given up: %s %s", s.Phase, s.Reason)
	}
}

// TestAllocationsOfAJobBefore checks that the allocations of a purged job with the same ID do not belong to the
// pod.
func TestAllocationsOfAJobBefore(t *testing.T) {
	d, p, _, e := made(t)
	d.set(func() { d.allocs = append(d.allocs, allocated(e, "old", nomadapi.AllocClientStatusComplete, 5)) })
	p.d.store.tell(d.allocs[0])
	p.d.store.tell(allocated(e, "new", nomadapi.AllocClientStatusRunning, 20))
	for range 2 {
		if a, moved := e.first(); a == nil || a.ID != "new" || moved {
			t.Errorf("the pod is the allocation %+v, and is moved: %t", a, moved)
		}
		p.lose(e)
		d.set(func() { d.allocs = append(d.allocs, allocated(e, "new", nomadapi.AllocClientStatusRunning, 20)) })
		if err := p.d.list(t.Context()); err != nil {
			t.Fatal(err)
		}
		e = p.d.store.byJob[e.jobID]
	}
}

// TestJobThatOthersPurged checks that a pod still exists while its tasks run, although another user purged its
// job.
func TestJobThatOthersPurged(t *testing.T) {
	d, p, pod, e := made(t)
	runs := allocated(e, "x", nomadapi.AllocClientStatusRunning, 20)
	p.d.store.tell(runs)
	d.set(func() {
		d.index = 40
		d.allocs = append(d.allocs, runs)
		delete(d.jobs, e.jobID)
	})
	if err := p.d.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := p.d.store.pods[pod.UID]; e == nil || !e.stopping {
		t.Errorf("a pod whose tasks still run is known as %+v", e)
	}
	p.lose(e)
	if err := p.DeletePod(t.Context(), pod); err != nil {
		t.Errorf("DeletePod of a pod whose tasks still run: %v", err)
	}
	if e = p.d.store.pods[pod.UID]; e == nil || !e.stopping {
		t.Fatalf("after DeletePod the pod is known as %+v", e)
	}
	e.askedIP = "x"
	if p.d.due(t.Context(), pod.UID, time.Now()) != nil {
		t.Error("a pod whose tasks still run is forgotten")
	}
	ended := allocated(e, "x", nomadapi.AllocClientStatusComplete, 20)
	ended.ModifyIndex = 50
	p.d.store.tell(ended)
	do := p.d.due(t.Context(), pod.UID, time.Now())
	if do == nil {
		t.Fatal("a pod whose tasks have ended is not forgotten")
	}
	d.set(func() { d.allocs = []*nomadapi.Allocation{ended} })
	do()
	if err := p.DeletePod(t.Context(), pod); !errdefs.IsNotFound(err) {
		t.Errorf("DeletePod of a pod that has ended: got %v, want not-found", err)
	}
}

// TestAllocationsThatOthersPurged checks the time until such a pod is forgotten. Nomad forgets the allocations
// of a purged job, and its client ends their tasks within the grace of the job.
func TestAllocationsThatOthersPurged(t *testing.T) {
	d, p, pod, e := made(t)
	p.d.store.tell(allocated(e, "x", nomadapi.AllocClientStatusRunning, 20))
	d.set(func() {
		d.index = 40
		delete(d.jobs, e.jobID)
	})
	for range 2 {
		if err := p.d.list(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	e.askedIP = "x"
	if p.d.store.pods[pod.UID] != e || p.d.due(t.Context(), pod.UID, time.Now()) != nil {
		t.Error("a pod whose tasks still run is forgotten")
	}
	if left := time.Until(e.endsBy); left <= 0 || left > killTimeout(pod) {
		t.Fatalf("its tasks count as ended in %s, want %s", left, killTimeout(pod))
	}
	e.endsBy = time.Now().Add(-time.Second)
	do := p.d.due(t.Context(), pod.UID, time.Now())
	if do == nil {
		t.Fatal("a pod whose tasks have ended is not forgotten")
	}
	do()
	if p.d.store.pods[pod.UID] != nil {
		t.Error("a pod whose tasks have ended is still known")
	}
}

// TestEvidenceStays checks that a job that ended without a deletion stays at Nomad until its pod is deleted,
// because the node may not have reported the end yet.
func TestEvidenceStays(t *testing.T) {
	d, p, pod, e := made(t)
	away := allocated(e, "x", nomadapi.AllocClientStatusUnknown, 20)
	d.set(func() { d.allocs = append(d.allocs, away) })
	p.d.store.tell(away)
	p.d.due(t.Context(), pod.UID, time.Now().Add(p.d.config.LostAfter.Duration+time.Minute))()
	e.stopEval = ""
	if !e.over() || d.jobs[e.jobID].Stop == nil {
		t.Fatalf("the pod is not given up: %+v", e)
	}
	if p.d.due(t.Context(), pod.UID, time.Now()) != nil {
		t.Error("the evidence of a lost pod is removed, although it was not deleted")
	}
	if err := p.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if do := p.d.due(t.Context(), pod.UID, time.Now()); do == nil {
		t.Error("a lost pod that was deleted is not forgotten")
	}
}

// TestClocksMayDiffer checks that no decision compares a time of Nomad with the local clock.
func TestClocksMayDiffer(t *testing.T) {
	d, p, pod, e := made(t)
	away := allocated(e, "x", nomadapi.AllocClientStatusUnknown, 20)
	away.ModifyTime = time.Now().Add(-time.Hour).UnixNano()
	p.d.store.tell(away)
	if p.d.due(t.Context(), pod.UID, time.Now().Add(time.Second)) != nil {
		t.Error("a pod is given up, as the clock of Nomad is behind")
	}
	path := "nomad/jobs/" + p.d.store.owner.prefix() + "x/pod/main"
	old := &nomadapi.Variable{Path: path, ModifyIndex: 3, ModifyTime: time.Now().Add(-time.Hour).UnixNano()}
	d.set(func() { d.variables[path] = old })
	p.d.sweep(t.Context())
	there := func() bool { return slices.Contains(d.paths(), path) }
	if !there() {
		t.Error("a Variable was removed that another process may just have written")
	}
	d.set(func() { old.ModifyIndex = 4 })
	if p.d.sweep(t.Context()); !there() {
		t.Error("a Variable was removed that was written since")
	}
	if p.d.sweep(t.Context()); there() {
		t.Error("a Variable without a job is left")
	}
	if used := variablePath(e.jobID, "main"); !slices.Contains(d.paths(), used) {
		t.Error("a Variable that is used was removed")
	}
}

// paths returns the paths of all Variables.
func (d *double) paths() (all []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for path := range d.variables {
		all = append(all, path)
	}
	return all
}
