// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"sync"
	"time"
)

// Follow implements service.Follower. Requests to Slurm and reads of files do not wait for each other.
func (d *driver) Follow(ctx context.Context) {
	d.mu.Lock()
	d.listsAt, d.readAt = time.Now(), time.Now()
	d.mu.Unlock()
	var loops, telling sync.WaitGroup
	loops.Go(func() { d.followJobs(ctx, &telling) })
	loops.Go(func() { d.followFiles(ctx, &telling) })
	loops.Go(func() { d.followHealth(ctx) })
	loops.Wait()
	telling.Wait()
}

// followJobs lists the jobs of all pods, often after a change and seldom at rest.
func (d *driver) followJobs(ctx context.Context, telling *sync.WaitGroup) {
	var listed, lists, partitions time.Time // the last list, and when each is due
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-d.wake:
			// One list is enough for many changes at once.
			if soon := listed.Add(d.config.FastEvery.Duration); soon.Before(lists) {
				lists = soon
			}
		}
		now := time.Now()
		if !now.Before(partitions) {
			d.lookAtPartition(ctx)
			partitions = time.Now().Add(partitionEvery)
		}
		if !now.Before(lists) {
			d.list(ctx)
			listed = time.Now()
			lists = time.Now().Add(d.every(d.config.FastEvery.Duration, d.config.SlowEvery.Duration))
		}
		d.report(ctx)
		d.tell(ctx, telling) // also while the files hang
		d.turned(&d.listsAt)
		timer.Reset(d.every(filesEvery, filesSlow))
	}
}

// followFiles reads the files of jobs, and removes the files of gone pods.
func (d *driver) followFiles(ctx context.Context, telling *sync.WaitGroup) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		d.readFiles(ctx)
		d.report(ctx)
		d.tell(ctx, telling)
		d.forget(ctx)
		d.turned(&d.readAt)
		timer.Reset(d.every(filesEvery, filesSlow))
	}
}

// followHealth reports a stuck loop.
func (d *driver) followHealth(ctx context.Context) {
	ticker := time.NewTicker(stuckTime / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			d.tellHealth()
		}
	}
}

// turned records that a loop has finished a round.
func (d *driver) turned(at *time.Time) {
	d.mu.Lock()
	*at = time.Now()
	d.mu.Unlock()
}

// every returns fast while something changes, and slow at rest.
func (d *driver) every(fast, slow time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.changed) < lively {
		return fast
	}
	return slow
}
