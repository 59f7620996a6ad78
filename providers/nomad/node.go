// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// ConfigureNode implements service.NodeConfigurer.
func (d *driver) ConfigureNode(ctx context.Context, n *corev1.Node) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	nodes, _, err := d.client.nodes(ctx, 0)
	if err != nil {
		log.G(ctx).WithError(err).Warn("The capacity of Nomad is not known yet")
	}
	n.Status.Capacity = placeOf(nodes, d.config).capacity(d.config)
	n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	n.Status.NodeInfo.ContainerRuntimeVersion = "nomad://" + d.config.Drivers[0]
}

// followNodes keeps the capacity up to date until ctx ends, by requests that wait for a change.
func (d *driver) followNodes(ctx context.Context) {
	var index uint64
	pause := newPause()
	for ctx.Err() == nil {
		nodes, next, err := d.client.nodes(ctx, index)
		if err != nil {
			index = 0
			d.mu.Lock()
			d.placeError = err
			d.mu.Unlock()
			sleep(ctx, pause.Step())
			continue
		}
		pause = newPause()
		index = next
		d.takePlace(placeOf(nodes, d.config))
		d.knownOnce.Do(func() { close(d.known) })
		sleep(ctx, shortestPause) // clients change one by one
	}
}

// takePlace records the clients, and reports their resources.
func (d *driver) takePlace(found place) {
	d.store.mu.Lock()
	if !maps.Equal(d.store.hosts, found.hosts) {
		d.store.hosts = found.hosts
		for _, e := range d.store.pods {
			d.store.touch(e)
		}
	}
	d.store.mu.Unlock()
	d.mu.Lock()
	d.place, d.placeError = found, nil
	d.mu.Unlock()
	d.provider.Offer(found.capacity(d.config))
}

// patience is how long a request waits for the first data about clients.
const patience = 10 * time.Second

// waitForPlace waits until the resources of the clients are known.
func (d *driver) waitForPlace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-d.known:
		return nil
	case <-ctx.Done():
		_, err := d.found()
		return errors.Join(err, ctx.Err())
	}
}

// Ping implements service.Pinger. The stream and waiting requests continue without a leader, so Ping checks that there is a leader.
func (d *driver) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	if err := d.waitForPlace(ctx); err != nil {
		return err
	}
	if err := d.client.led(ctx); err != nil {
		return err
	}
	found, err := d.found()
	if err != nil {
		return err
	}
	pods := d.provider.Cache()
	return cmp.Or(pods.Wait(ctx), pods.Away(), found.unready(d.config))
}
