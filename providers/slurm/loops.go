// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// look has the poll look soon.
func (p *provider) look() {
	p.mu.Lock()
	p.changed = time.Now()
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// RunInBackground implements node.BackgroundRunner: what Slurm is asked, the files of jobs and tokens wait for none of each other.
func (p *provider) RunInBackground(ctx context.Context) error {
	p.mu.Lock()
	p.listsAt, p.readAt = time.Now(), time.Now()
	p.mu.Unlock()
	var loops, telling sync.WaitGroup
	loops.Go(func() { p.followJobs(ctx, &telling) })
	loops.Go(func() { p.followFiles(ctx, &telling) })
	loops.Go(func() { p.followTokens(ctx) })
	loops.Wait()
	telling.Wait()
	p.slurm.close()
	return nil
}

// followJobs asks Slurm: one list for all pods, often after a change and seldom at rest.
func (p *provider) followJobs(ctx context.Context, telling *sync.WaitGroup) {
	var listed, lists, partitions time.Time // the last list, and when each is due
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-p.wake:
			// Many changes at once are one list.
			if soon := listed.Add(p.config.FastEvery.Duration); soon.Before(lists) {
				lists = soon
			}
		}
		now := time.Now()
		if !now.Before(partitions) {
			p.lookAtPartition(ctx)
			partitions = time.Now().Add(partitionEvery)
		}
		if !now.Before(lists) {
			p.list(ctx)
			listed = time.Now()
			lists = time.Now().Add(p.every(p.config.FastEvery.Duration, p.config.SlowEvery.Duration))
		}
		p.report()
		p.tell(ctx, telling) // also while the files hang
		p.turned(&p.listsAt)
		timer.Reset(p.every(filesEvery, filesSlow))
	}
}

// followFiles looks at the files of jobs, and removes those of pods that are gone.
func (p *provider) followFiles(ctx context.Context, telling *sync.WaitGroup) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		p.readFiles(ctx)
		p.report()
		p.tell(ctx, telling)
		p.forget(ctx)
		p.turned(&p.readAt)
		timer.Reset(p.every(filesEvery, filesSlow))
	}
}

// followTokens renews tokens.
func (p *provider) followTokens(ctx context.Context) {
	ticker := time.NewTicker(filesSlow)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.renewTokens(ctx)
		}
	}
}

// turned takes in that a loop has come round.
func (p *provider) turned(at *time.Time) {
	p.mu.Lock()
	*at = time.Now()
	p.mu.Unlock()
}

// stuck tells which loop has not come round for too long. The caller holds mu.
func (p *provider) stuck() error {
	for what, at := range map[string]time.Time{"the commands of Slurm": p.listsAt, "the files in sharedDir": p.readAt} {
		if !at.IsZero() && time.Since(at) > stuckTime {
			return fmt.Errorf("%s have not answered for %v: pods are as they were then", what, time.Since(at).Round(time.Second))
		}
	}
	return nil
}

// every is fast while something changes.
func (p *provider) every(fast, slow time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.changed) < lively {
		return fast
	}
	return slow
}
