// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// DeletePod implements node.PodLifecycleHandler.
func (p *provider) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	if err := p.wait(ctx, p.synced); err != nil {
		return err
	}
	p.store.mu.Lock()
	e := p.store.pods[pod.UID]
	p.store.mu.Unlock()
	if e == nil {
		var err error
		if e, err = p.adopt(ctx, pod); err != nil {
			return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	p.store.mu.Lock()
	e.deleted = !e.hidden
	hidden, seconds := e.hidden, int64(grace(e.pod)/time.Second)
	p.store.mu.Unlock()
	if hidden {
		return errdefs.NotFoundf("pod %s/%s is not at Nomad", pod.Namespace, pod.Name)
	}
	if pod.DeletionGracePeriodSeconds != nil {
		seconds = *pod.DeletionGracePeriodSeconds
	}
	if err := p.stop(ctx, e, time.Now().Add(time.Duration(seconds)*time.Second)); err != nil {
		return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// adopt takes in the job of a pod that no list told of: it was made by a request whose answer was lost. An error of the kind not-found says that
// there is none.
func (p *provider) adopt(ctx context.Context, pod *corev1.Pod) (*entry, error) {
	e := &entry{pod: pod.DeepCopy(), jobID: p.store.owner.jobID(string(pod.UID)), submitted: time.Now()}
	job, err := p.client.job(ctx, e.jobID)
	switch {
	case errdefs.IsNotFound(err):
		runs, listErr := p.client.runs(ctx, e.jobID)
		if listErr != nil {
			return nil, listErr
		}
		if !runs {
			return nil, err
		}
		e.stopping, e.purged = true, true // by others
	case err != nil:
		return nil, err
	case !p.isOf(job, e):
		return nil, errdefs.NotFoundf("job %s belongs to another pod", e.jobID)
	default:
		e.index, e.born, e.variables = *job.JobModifyIndex, *job.CreateIndex, strings.Fields(job.Meta[metaVariables])
	}
	p.store.mu.Lock()
	if known := p.store.pods[pod.UID]; known != nil {
		e = known
	} else {
		p.store.add(e) // before the list, so that no event is missed
	}
	p.store.mu.Unlock()
	return e, p.list(ctx) // what runs of it
}

// stop tells Nomad to stop a pod, once; the time counts each time.
func (p *provider) stop(ctx context.Context, e *entry, killAt time.Time) error {
	p.store.mu.Lock()
	stopping := e.stopping
	e.asked = true // its event may be faster than the answer
	p.store.mu.Unlock()
	eval, index := "", uint64(0)
	var err error
	if !stopping {
		eval, index, err = p.client.deregister(ctx, e.jobID)
	}
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	e.asked = false
	if err != nil {
		return err
	}
	if !stopping && !e.stopping {
		e.stopping, e.index = true, max(e.index, index) // lists from before do not know the evaluation
		if !e.done(eval) {
			e.stopEval = eval
		}
	}
	if e.killAt.IsZero() || killAt.Before(e.killAt) {
		e.killAt = killAt
	}
	p.store.touch(e)
	return nil
}

// lostAt is when a pod counts as lost, as its client is away; zero if it is not. The lock is held.
func (p *provider) lostAt(e *entry) time.Time {
	if e.away() == "" || e.lost {
		return time.Time{}
	}
	return e.awaySince.Add(p.config.LostAfter.Duration)
}

// lose gives up a pod whose client is away for too long. Its job is stopped, so the client ends what it still runs when it is back. Nomad itself
// gives up allocations only of jobs that may have another one.
func (p *provider) lose(ctx context.Context, e *entry) error {
	p.store.mu.Lock()
	away := e.away()
	p.store.mu.Unlock()
	if away == "" {
		return nil
	}
	a, err := p.client.allocation(ctx, away) // the client may be back, and nobody told of it
	if err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	p.store.mu.Lock()
	if err == nil {
		p.store.allocation(e, a)
	}
	back := e.away() == ""
	p.store.mu.Unlock()
	if back {
		return nil
	}
	if err := p.stop(ctx, e, time.Time{}); err != nil {
		return err
	}
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	e.lost = true
	p.store.touch(e)
	return nil
}
