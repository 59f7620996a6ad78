// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// filesEvery is how often the files of jobs are looked at, which asks Slurm nothing.
	filesEvery = 200 * time.Millisecond
	// filesSlow is the same where nothing has changed for a while.
	filesSlow = time.Second
	// lively is how long after a change another one is expected.
	lively = 15 * time.Second
	// missingLists is after how many complete lists a job is lost that was submitted, if they are those of settleTime at least.
	missingLists = 3
	// settleTime is how long the last status of a job that is over may take to be seen: a shared file system may show what was before.
	settleTime = time.Minute
	// accountTime is how long the accounting may take to answer before a job is lost, and accountEvery how often it is asked.
	accountTime  = 10 * time.Minute
	accountEvery = 30 * time.Second
	// stuckTime is how long a round of the commands of Slurm, or one of the files, may take.
	stuckTime = 2 * time.Minute
	// renewals is how many pods get new tokens at once.
	renewals = 8
	// unansweredTime is how long a job may come that was submitted without an answer.
	unansweredTime = time.Hour
	// partitionEvery is how often the partition is looked at.
	partitionEvery = 30 * time.Second
)

// list takes in what Slurm says of all jobs. An error says nothing about any of them.
func (p *provider) list(ctx context.Context) {
	began := time.Now()
	jobs, err := p.slurm.jobs(ctx)
	if ctx.Err() != nil {
		return
	}
	byPod := map[types.UID][]queued{}
	for _, q := range jobs {
		if uid, ok := p.podOf(q); ok {
			byPod[uid] = append(byPod[uid], q)
		}
	}
	if err == nil {
		err = p.adopt(ctx, byPod)
	}
	if err == nil {
		err = p.firstUse(byPod)
	}
	p.mu.Lock()
	first := p.listErr
	p.listErr = err
	p.mu.Unlock()
	if err != nil {
		if first == nil {
			log.G(ctx).WithError(err).Warn("It is not known which jobs there are: they are asked for again")
		}
		return
	}
	var doubled []int
	var forgotten []queued
	p.mu.Lock()
	for uid, t := range p.pods {
		own, others := choose(t, byPod[uid])
		doubled = append(doubled, others...)
		switch {
		case own != nil:
			t.job, t.missing, t.forgotten = *own, 0, false
		case t.submitted.Before(began):
			if t.missing++; t.missing == 1 {
				t.missingAt = began
			}
			long := began.Sub(t.missingAt) >= p.settle || t.said != nil && t.said.Ended
			if t.missing >= missingLists && long && ended[t.job.State] == "" && (t.late() || !began.Before(t.askAt)) {
				q := t.job
				q.Name = jobName(uid)
				forgotten = append(forgotten, q)
			}
		}
		p.refresh(t)
	}
	p.doubled = doubled
	p.mu.Unlock()
	p.lose(ctx, forgotten)
	select {
	case <-p.listed:
	default:
		close(p.listed)
	}
}

// lose takes in that Slurm does not know some jobs any more: how they ended may be in its accounting. One that runs there may run, and so may all
// while it does not answer: such a pod stays as it is, unless it is to stop and its time is up.
func (p *provider) lose(ctx context.Context, jobs []queued) {
	if len(jobs) == 0 {
		return
	}
	known, err := p.slurm.accounted(ctx, jobs)
	if err != nil {
		log.G(ctx).WithError(err).Warn("How jobs ended that are lost cannot be asked of the accounting of Slurm")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range jobs {
		t := p.pods[types.UID(strings.TrimPrefix(q.Name, jobName("")))]
		if t == nil || t.missing < missingLists || t.job.ID != q.ID {
			continue
		}
		state, has := known[q.ID]
		doubt := has || err != nil && time.Since(t.missingAt) < p.settle+accountTime
		switch {
		case ended[state] != "":
		case doubt && !t.late():
			t.askAt = time.Now().Add(accountEvery)
			continue
		default:
			state = stateLost
		}
		t.job.State, t.forgotten = state, true
		p.refresh(t)
	}
}

// late tells whether the time of a pod that is to stop is up. The caller holds mu.
func (t *tracked) late() bool { return t.stop != nil && t.stop.late }

// podOf returns the pod that a job runs, by its comment. A site may write another comment: a pod that is known is known by the name of its job too.
func (p *provider) podOf(q queued) (types.UID, bool) {
	if id, ok := parseComment(q.Comment); ok {
		return id.UID, id.Cluster == p.config.ClusterName && id.Node == p.in.Node.Name && q.Name == jobName(id.UID)
	}
	uid, ok := strings.CutPrefix(q.Name, jobName(""))
	p.mu.Lock()
	defer p.mu.Unlock()
	return types.UID(uid), ok && p.pods[types.UID(uid)] != nil
}

// choose returns the job that runs the pod, and others that are not to.
func choose(t *tracked, jobs []queued) (own *queued, others []int) {
	sort.Slice(jobs, func(i, k int) bool { return jobs[i].ID < jobs[k].ID })
	for i := range jobs {
		if t.said != nil && number(t.said.Job) == jobs[i].ID {
			own = &jobs[i]
		}
	}
	for i := range jobs {
		if own == nil && t.job.ID == jobs[i].ID {
			own = &jobs[i]
		}
	}
	if own == nil && len(jobs) > 0 {
		own = &jobs[0]
	}
	for i := range jobs {
		if &jobs[i] != own && ended[jobs[i].State] == "" && (t.said != nil || jobs[i].State == "PENDING" && own.State == "RUNNING") {
			others = append(others, jobs[i].ID)
		}
	}
	return own, others
}
