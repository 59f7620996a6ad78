// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	streamLasts = 30 * time.Second // minimum duration of a stream that counts as a success
	listEvery   = 10 * time.Minute // in case an event got lost
	lookEvery   = time.Second      // for due work and for retries
	together    = 8                // concurrent requests about pods, and concurrent signals
)

// followEvents follows the event stream, and lists all pods each time it begins: the list has earlier changes,
// and the stream has later ones.
func (d *driver) followEvents(ctx context.Context) {
	pause := newPause()
	for ctx.Err() == nil {
		opened := time.Now()
		begun := func() error {
			l, err := d.client.list(ctx, d.store.owner.prefix())
			if err != nil {
				return err
			}
			d.setOutdated(&d.down, nil)
			d.take(ctx, l) // the events that follow are newer than this list
			return nil
		}
		err := d.client.events(ctx, begun, func(e event) {
			if d.store.event(e) {
				d.listSoon()
			}
		})
		if ctx.Err() != nil {
			return
		}
		err = fmt.Errorf("namespace %s: %w", d.config.Namespace, err)
		d.setOutdated(&d.down, err)
		log.G(ctx).WithError(err).Warn("Changes of pods at Nomad are not seen")
		if time.Since(opened) > streamLasts { // a stream that is cut at once is no success
			pause = newPause()
		}
		sleep(ctx, pause.Step())
	}
}

func (d *driver) list(ctx context.Context) error {
	l, err := d.client.list(ctx, d.store.owner.prefix())
	d.setOutdated(&d.listError, err)
	if err != nil {
		d.listSoon()
		return err
	}
	if d.take(ctx, l) {
		d.listSoon() // earlier events of these jobs were ignored
	}
	return nil
}

// take merges a complete list into the store, and reports whether the list had unknown pods.
func (d *driver) take(ctx context.Context, l listed) (added bool) {
	d.telling.Lock()
	defer d.telling.Unlock()
	added, gone := d.store.merge(l)
	d.provider.Cache().TakeAll(ctx, time.Now(), d.store.instances())
	for _, uid := range gone {
		d.provider.Cache().Forget(uid)
	}
	return added
}

// tell reports the known state of a pod to the provider.
func (d *driver) tell(ctx context.Context, uid types.UID) {
	d.telling.Lock()
	defer d.telling.Unlock()
	d.store.mu.Lock()
	var i *instance
	if e := d.store.pods[uid]; e != nil && !e.hidden {
		i = d.store.instance(e)
	}
	d.store.mu.Unlock()
	if i != nil {
		d.provider.Cache().Take(ctx, time.Now(), i)
	}
}

// listSoon makes listAgain list at once.
func (d *driver) listSoon() {
	select {
	case d.relist <- struct{}{}:
	default:
	}
}

// listAgain lists on request and periodically, and then removes the Variables of gone jobs.
func (d *driver) listAgain(ctx context.Context) {
	ticker := time.NewTicker(listEvery)
	defer ticker.Stop()
	if d.provider.Cache().Wait(ctx) == nil {
		d.sweep(ctx)
	}
	pause := newPause()
	for {
		var err error
		select {
		case <-d.relist:
			err = d.list(ctx)
		case <-ticker.C:
			if err = d.list(ctx); err == nil {
				d.sweep(ctx)
			}
		case <-ctx.Done():
			return
		}
		if err == nil {
			pause = newPause()
			continue
		}
		if ctx.Err() == nil {
			log.G(ctx).WithError(err).Warn("The jobs of Nomad cannot be listed")
		}
		sleep(ctx, pause.Step())
	}
}

// sweep removes Variables whose job was never submitted, and Variables left by a node that ended during a
// removal. It removes only Variables that the last sweep also saw and that are unchanged since, because another
// process of the node may be about to submit the job.
func (d *driver) sweep(ctx context.Context) {
	all, err := d.client.variables(ctx, variablesOf+d.store.owner.prefix())
	if err != nil {
		log.G(ctx).WithError(err).Warn("Variables of Nomad cannot be listed")
		return
	}
	unused := map[string]uint64{}
	for _, v := range all {
		job, _, _ := strings.Cut(strings.TrimPrefix(v.Path, variablesOf), "/")
		d.store.mu.Lock()
		used := d.store.byJob[job] != nil
		d.store.mu.Unlock()
		if used {
			continue
		}
		if unused[v.Path] = v.ModifyIndex; d.unused[v.Path] != v.ModifyIndex {
			continue
		}
		if err := d.client.removeVariable(ctx, v.Path, v.ModifyIndex); err != nil {
			log.G(ctx).WithError(err).Warn("A Variable of Nomad without a job cannot be removed")
		}
	}
	d.unused = unused
}

// List implements service.Driver. The regular lists are made by Follow.
func (d *driver) List(ctx context.Context) ([]*instance, error) {
	if err := d.list(ctx); err != nil {
		return nil, fmt.Errorf("list the jobs of Nomad: %w", err)
	}
	return d.store.instances(), nil
}
