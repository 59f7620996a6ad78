// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// again sets the time of the next order to a job. The waits grow, so that an overloaded Slurm does not get more requests.
func (s *stopping) again(now time.Time, first time.Duration) {
	s.next = now.Add(min(first<<min(s.tries, 6), time.Minute))
	s.tries++
}

// order is a command for several jobs.
type order struct {
	flags []string
	ids   []int
	lost  []types.UID // instead of ids
	stops []*stopping // pods that have got the order, or have ended, once the command succeeded
}

// Waits before a job gets the same order again.
const (
	askPending = time.Second
	askRunning = 5 * time.Second
)

// orders returns the due orders, one for each kind.
func (d *driver) orders(now time.Time) (due []order) {
	kill, lost := order{}, order{}
	drop, signal := order{flags: []string{whilePending}}, order{flags: []string{tellBatch, batchOnly}}
	d.mu.Lock()
	defer d.mu.Unlock()
	kill.ids, d.doubled = d.doubled, nil // the next list sees them again
	for _, t := range d.pods {
		s := t.stop
		if s == nil || ended[t.job.State] != "" && !mayRun(t) {
			continue
		}
		if now.After(s.until) && !s.late {
			s.late, s.next, s.tries = true, time.Time{}, 0
		}
		switch {
		case now.Before(s.next):
		case ended[t.job.State] != "":
			lost.lost, lost.stops = append(lost.lost, t.id.UID), append(lost.stops, s)
			s.again(now, askRunning)
		case s.late:
			kill.ids = append(kill.ids, t.job.ID)
			s.again(now, askRunning)
		case t.job.State == "PENDING":
			drop.ids = append(drop.ids, t.job.ID)
			s.again(now, askPending) // the job may have begun meanwhile
		case t.said == nil:
			// The job has begun, and cannot get the order yet.
		case !t.said.Ended && !s.told:
			signal.ids, signal.stops = append(signal.ids, t.job.ID), append(signal.stops, s)
			s.again(now, askRunning)
		}
	}
	for _, o := range []order{kill, lost, drop, signal} {
		if len(o.ids)+len(o.lost) > 0 {
			due = append(due, o)
		}
	}
	return due
}

// mayRun reports whether the job of a stopping pod may run although Slurm does not show it. Such a job is cancelled before its files
// are removed. The caller holds mu.
func mayRun(t *tracked) bool {
	return (t.job.State == stateLost || t.forgotten) && !t.stop.ended && (t.said == nil || !t.said.Ended)
}

// tell sends due orders, by one command for each kind, without waiting for the command: at most one command of a
// kind runs at a time.
func (d *driver) tell(ctx context.Context, running *sync.WaitGroup) {
	select {
	case d.telling <- struct{}{}:
	default:
		return
	}
	due := d.orders(time.Now())
	if len(due) == 0 {
		<-d.telling
		return
	}
	running.Go(func() {
		defer func() { <-d.telling; d.look() }()
		var commands sync.WaitGroup
		for _, o := range due {
			commands.Go(func() { d.send(ctx, o) })
		}
		commands.Wait()
	})
}

func (d *driver) send(ctx context.Context, o order) {
	err := d.slurm.cancel(ctx, o.ids, o.flags...)
	if len(o.lost) > 0 {
		err = d.slurm.cancelNamed(ctx, o.lost)
	}
	if err != nil {
		log.G(ctx).WithError(err).Debug("Some jobs could not be told to stop: they are told again")
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range o.stops {
		s.told, s.ended = true, len(o.lost) > 0
	}
}

// forget removes the remains of stopped pods whose job has ended.
func (d *driver) forget(ctx context.Context) {
	var gone []*tracked
	d.mu.Lock()
	for _, t := range d.pods {
		if t.stop != nil && ended[t.job.State] != "" && !mayRun(t) && !d.unsettled(t) {
			gone = append(gone, t)
		}
	}
	d.mu.Unlock()
	for _, t := range gone {
		if err := d.place.remove(t.id.UID); err != nil {
			log.G(ctx).WithError(err).Warn("The directory of a pod could not be removed: it is tried again")
			continue
		}
		d.reporting.Lock()
		d.mu.Lock()
		last := t.shown
		delete(d.pods, t.id.UID)
		d.mu.Unlock()
		d.provider.Cache().Take(ctx, time.Now(), &last)
		d.provider.Cache().Forget(t.id.UID)
		d.reporting.Unlock()
	}
}
