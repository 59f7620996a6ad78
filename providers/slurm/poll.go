// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// filesEvery is the interval of reads of jobs' files, which send no request to Slurm.
	filesEvery = 200 * time.Millisecond
	// filesSlow is the interval after a while without changes.
	filesSlow = time.Second
	// lively is the time after a change during which another change is expected.
	lively = 15 * time.Second
	// missingLists is the number of complete lists without a submitted job after which it is lost, if they span
	// settleTime at least.
	missingLists = 3
	// accountTime is the time without an answer of the accounting after which a job is lost, and accountEvery
	// the interval of requests.
	accountTime  = 10 * time.Minute
	accountEvery = 30 * time.Second
	// partitionEvery is the interval of requests for the partition.
	partitionEvery = 30 * time.Second
)

// list applies Slurm's list of all jobs. After an error, all jobs keep their state.
func (d *driver) list(ctx context.Context) {
	began := time.Now()
	jobs, err := d.slurm.jobs(ctx)
	if ctx.Err() != nil {
		return
	}
	byPod := map[types.UID][]queued{}
	for _, q := range jobs {
		if uid, ok := d.podOf(q); ok {
			byPod[uid] = append(byPod[uid], q)
		}
	}
	if err == nil {
		err = d.adopt(ctx, byPod)
	}
	if err == nil {
		err = d.firstUse(byPod)
	}
	d.mu.Lock()
	first := d.listErr
	d.listErr = err
	d.mu.Unlock()
	d.tellHealth()
	if err != nil {
		if first == nil {
			log.G(ctx).WithError(err).Warn("It is not known which jobs there are: they are asked for again")
		}
		return
	}
	var doubled []int
	var forgotten []queued
	d.mu.Lock()
	for uid, t := range d.pods {
		own, others := choose(t, byPod[uid])
		doubled = append(doubled, others...)
		switch {
		case own != nil:
			t.job, t.missing, t.forgotten = *own, 0, false
		case t.submitted.Before(began):
			if t.missing++; t.missing == 1 {
				t.missingAt = began
			}
			long := began.Sub(t.missingAt) >= d.settle || t.said != nil && t.said.Ended
			if t.missing >= missingLists && long && ended[t.job.State] == "" && (t.late() || !began.Before(t.askAt)) {
				q := t.job
				q.Name = jobName(uid)
				forgotten = append(forgotten, q)
			}
		}
		d.refresh(t)
	}
	d.doubled = doubled
	d.mu.Unlock()
	d.lose(ctx, forgotten)
	d.reporting.Lock()
	defer d.reporting.Unlock()
	d.provider.Cache().TakeAll(ctx, time.Now(), d.instances(func(*tracked) bool { return true }))
}

// lose handles jobs that Slurm no longer knows. Their end may be in the accounting. A pod keeps its state if its job runs according to
// the accounting, or while the accounting does not answer, unless the pod must stop and its time is up.
func (d *driver) lose(ctx context.Context, jobs []queued) {
	if len(jobs) == 0 {
		return
	}
	known, err := d.slurm.accounted(ctx, jobs)
	if err != nil {
		log.G(ctx).WithError(err).Warn("How jobs ended that are lost cannot be asked of the accounting of Slurm")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range jobs {
		t := d.pods[types.UID(strings.TrimPrefix(q.Name, jobName("")))]
		if t == nil || t.missing < missingLists || t.job.ID != q.ID {
			continue
		}
		state, has := known[q.ID]
		doubt := has || err != nil && time.Since(t.missingAt) < d.settle+accountTime
		switch {
		case ended[state] != "":
		case doubt && !t.late():
			t.askAt = time.Now().Add(accountEvery)
			continue
		default:
			state = stateLost
		}
		t.job.State, t.forgotten = state, true
		d.refresh(t)
	}
}

// late reports whether the time of a stopping pod is up. The caller holds mu.
func (t *tracked) late() bool { return t.stop != nil && t.stop.late }

// podOf returns the pod of a job, by its comment. A site may write another comment, so a known pod is also found
// by the name of its job.
func (d *driver) podOf(q queued) (types.UID, bool) {
	if id, ok := parseComment(q.Comment); ok {
		return id.UID, id.Cluster == d.config.ClusterName && id.Node == d.in.Node.Name && q.Name == jobName(id.UID)
	}
	uid, ok := strings.CutPrefix(q.Name, jobName(""))
	d.mu.Lock()
	defer d.mu.Unlock()
	return types.UID(uid), ok && d.pods[types.UID(uid)] != nil
}

// choose returns the job that runs the pod, and the others, which must not run it.
func choose(t *tracked, jobs []queued) (own *queued, others []int) {
	slices.SortFunc(jobs, func(a, b queued) int { return a.ID - b.ID })
	for _, runs := range []func(queued) bool{
		func(q queued) bool { return t.said != nil && t.said.Job == strconv.Itoa(q.ID) },
		func(q queued) bool { return t.job.ID == q.ID },
		func(queued) bool { return true },
	} {
		if i := slices.IndexFunc(jobs, runs); own == nil && i >= 0 {
			own = &jobs[i]
		}
	}
	for i := range jobs {
		if &jobs[i] != own && ended[jobs[i].State] == "" && (t.said != nil || jobs[i].State == "PENDING" && own.State == "RUNNING") {
			others = append(others, jobs[i].ID)
		}
	}
	return own, others
}

// List implements service.Driver. It is not called, because Follow makes the lists.
func (d *driver) List(ctx context.Context) ([]*instance, error) {
	d.list(ctx)
	return d.instances(func(*tracked) bool { return true }), d.health()
}
