// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// look is a read of a job's status file.
type look struct {
	t     *tracked
	seen  os.FileInfo
	again bool
	said  *podjob.Status
	now   os.FileInfo
}

// readFiles reads the status files of jobs. The shared file system may be slow, or hang, so readFiles never waits for it with mu.
// After a failed read, no job counts as ended without a last status.
func (d *driver) readFiles(ctx context.Context) {
	began := time.Now()
	var looks []look
	d.mu.Lock()
	for _, t := range d.pods {
		if t.said == nil || !t.said.Ended {
			looks = append(looks, look{t: t, seen: t.seen, again: d.unsettled(t)})
		}
	}
	d.mu.Unlock()
	var away error
	for i := range looks {
		l := &looks[i]
		var err error
		if l.said, l.now, err = d.place.said(l.t.id.UID, l.seen, l.again); err != nil {
			away = fmt.Errorf("sharedDir: the status files of pods cannot be read: %w", err)
		}
	}
	if err := d.place.used(); err != nil && len(looks) > 0 {
		away = err
	}
	d.mu.Lock()
	defer d.tellHealth()
	defer d.mu.Unlock()
	if away != nil && d.away == nil {
		log.G(ctx).WithError(away).Warn("Pods stay as they are until their files can be read")
	}
	if d.away = away; away == nil {
		d.filesAt = began
	}
	for _, l := range looks {
		if l.said != nil {
			l.t.said, l.t.seen, d.changed = l.said, l.now, time.Now()
		}
		if l.said != nil || !l.t.overAt.IsZero() { // its time may be up
			d.refresh(l.t)
		}
	}
}

// unsettled reports whether the job of t is over and its last status may still appear. This ends with a read of its files after the
// deadline. A job without a node has no status. The caller holds mu.
func (d *driver) unsettled(t *tracked) bool {
	if ended[t.job.State] == "" {
		t.overAt = time.Time{}
		return false
	}
	if t.overAt.IsZero() || d.away != nil {
		t.overAt = time.Now()
	}
	ran := t.said != nil || t.job.Host != "" && t.job.Host != "n/a" && t.job.Host != "(null)"
	return ran && (t.said == nil || !t.said.Ended) && d.filesAt.Sub(t.overAt) < d.settle
}

// refresh computes the shown state of t. The caller holds mu.
func (d *driver) refresh(t *tracked) {
	next := instance{t.id, t.job, t.said, d.unsettled(t)}
	if next != t.shown {
		t.shown, t.reported = next, false
		d.changed = time.Now()
	}
}

// report reports each changed pod. Only one caller reports at a time, so that later states follow earlier ones.
func (d *driver) report(ctx context.Context) {
	d.reporting.Lock()
	defer d.reporting.Unlock()
	d.provider.Cache().Take(ctx, time.Now(), d.instances(func(t *tracked) bool { return !t.reported })...)
}

// instances returns the instances of wanted pods, and marks them as reported.
func (d *driver) instances(wanted func(*tracked) bool) (all []*instance) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.pods {
		if wanted(t) {
			t.reported = true
			i := t.shown
			all = append(all, &i)
		}
	}
	return all
}
