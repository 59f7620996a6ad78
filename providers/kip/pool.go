// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

const (
	// scarceFor is the time for which starts avoid a type without capacity.
	scarceFor = 3 * time.Minute
	// quotaFor is the wait after a refusal by a quota, a limit of the configuration, or missing rights.
	quotaFor = 30 * time.Second
	// throttledFor is the wait after the cloud throttled a start without a retry time.
	throttledFor = 5 * time.Second
	// startTries is the maximum number of attempts of a start in one call.
	startTries = 3
)

// waitOf returns the wait after a refused start. False means that the start may have made a machine, or that a retry is useless.
func waitOf(err error) (time.Duration, bool) {
	why := machine.RefusalOf(err)
	if why == 0 {
		return 0, false
	}
	if after, says := errdefs.RetryAfterOf(err); says {
		return after, true
	}
	switch why {
	case machine.NoCapacity:
		return scarceFor, true
	case machine.Throttled:
		return throttledFor, true
	}
	return quotaFor, true
}

// start starts a machine and records it, unless its type is scarce, or a limit or the budget prevents it. It retries a start without an answer, with
// the same token. The machine always counts towards the limits: first in d.asking, then in d.cells.
func (d *driver) start(ctx context.Context, spec machine.Spec) (*cellState, error) {
	if err := d.admit(spec); err != nil {
		return nil, err
	}
	var m machine.Machine
	var err error
	for range startTries {
		limited, cancel := context.WithTimeout(ctx, requestTime)
		m, err = d.cloud.Start(limited, spec)
		cancel()
		if err == nil || machine.RefusalOf(err) != 0 || errdefs.IsInvalidInput(err) || ctx.Err() != nil {
			break
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	why := machine.RefusalOf(err)
	if err == nil || why != 0 || errdefs.IsInvalidInput(err) {
		delete(d.asking, spec.Token)
	}
	if why == machine.NoCapacity {
		d.scarce[scarcity{spec.Type.Name, spec.Spot}] = time.Now().Add(scarceFor)
	}
	if err != nil {
		return nil, fmt.Errorf("start a machine of type %s: %w", spec.Type.Name, err)
	}
	d.nudge()
	return d.take(m), nil
}

// admit records a start in d.asking, or returns the reason against it.
func (d *driver) admit(spec machine.Spec) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	kind := scarcity{spec.Type.Name, spec.Spot}
	if until, is := d.scarce[kind]; is {
		if left := until.Sub(now); left > 0 {
			return machine.Refuse(machine.NoCapacity, errdefs.RetryAfter(fmt.Errorf("the cloud had no machine of type %s: it is left alone for %s", kind.name, left.Round(time.Second)), left))
		}
		delete(d.scarce, kind)
	}
	for token, a := range d.asking {
		if now.Sub(a.at) > 2*d.at.seen { // lists would show an existing machine by now
			delete(d.asking, token)
		}
	}
	price := priceOf(spec.Type, spec.Spot)
	if _, again := d.asking[spec.Token]; !again {
		count, cost := int64(len(d.asking)), int64(0)
		for _, a := range d.asking {
			cost += a.price
		}
		for _, c := range d.cells {
			if c.State != machine.Gone {
				count++
				cost += d.priceOf(c)
			}
		}
		if count >= d.config.MaxMachines {
			return machine.Refuse(machine.Quota, fmt.Errorf("there are %d machines, and maxMachines of the provider's configuration allows no more", count))
		}
		if most := millionths(d.config.MaxPricePerHour); most > 0 && cost+price > most {
			return machine.Refuse(machine.Quota, fmt.Errorf("all machines would cost %s in an hour, and maxPricePerHour of the provider's configuration is %s", money(cost+price), d.config.MaxPricePerHour))
		}
	}
	if wait := d.starts.take(now, d.config.StartsPerMinute); wait > 0 {
		return machine.Refuse(machine.Throttled, errdefs.RetryAfter(errors.New("startsPerMinute of the provider's configuration lets no machine start now"), wait))
	}
	d.asking[spec.Token] = asking{spec.Type, price, now}
	return nil
}

func money(millionths int64) string {
	return fmt.Sprintf("%.4f", float64(millionths)/1e6)
}

// priceOf returns the price of a machine for an hour. The caller holds d.mu.
func (d *driver) priceOf(c *cellState) int64 {
	t, err := d.config.typeNamed(c.Type)
	if err != nil {
		return 0 // the configuration no longer has the type
	}
	return priceOf(t.machineType(), c.Spot)
}

// takeStandby assigns a fitting standby machine to the pod. False means that no standby machine fits.
func (d *driver) takeStandby(ctx context.Context, pod *corev1.Pod, w wish, bundle podjob.Bundle) (i instance, taken bool, err error) {
	for {
		d.mu.Lock()
		c := d.waiting(pod, w)
		if c == nil {
			d.mu.Unlock()
			return instance{}, false, nil
		}
		c.pod, c.bundle = identity.Of(pod), &bundle // no other pod can take the machine from now on
		d.mu.Unlock()
		err := d.tagAs(ctx, c, identity.Of(pod))
		if errdefs.IsNotFound(err) { // the machine has ended
			d.mu.Lock()
			c.doomed, c.bundle = true, nil
			d.mu.Unlock()
			continue
		}
		if err != nil { // step tags the machine again before it gives the pod
			return instance{}, false, fmt.Errorf("tag machine %s as the pod's: %w", c.id, err)
		}
		d.mu.Lock()
		i = c.instance()
		d.mu.Unlock()
		c.poke()
		d.nudge()
		return i, true, nil
	}
}

// tagAs tags a standby machine as a pod's. The machine does not get the pod before tagAs succeeds.
func (d *driver) tagAs(ctx context.Context, c *cellState, pod identity.Pod) error {
	tags := d.owner.Tags(pod)
	tags["Name"], tags[tagStandby] = nameOf(pod), "false"
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	if err := d.cloud.Tag(ctx, c.id, tags); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c.setTags(tags)
	return nil
}

// waiting returns a standby machine for a pod, or nil: a machine that is already assigned to this pod, or the cheapest one with an agent that answers. The
// caller holds d.mu.
func (d *driver) waiting(pod *corev1.Pod, w wish) *cellState {
	for _, c := range d.cells {
		if c.pod.UID == pod.UID && c.bundle != nil && c.Tags[tagStandby] != "" && c.State != machine.Gone && !c.doomed {
			return c
		}
	}
	if w.special {
		return nil
	}
	for _, t := range w.types {
		for _, c := range d.cells {
			if c.Type == t.Name && c.Spot == w.spec.Spot && c.isWaiting() && c.said != nil && c.agent != nil {
				return c
			}
		}
	}
	return nil
}

// isWaiting reports whether a machine waits for a pod. A machine that reports a pod does not wait, independently of its tags.
func (c *cellState) isWaiting() bool {
	return c.pod.UID == "" && (c.said == nil || c.said.Pod == "") && c.Tags[tagStandby] == "true" && !c.doomed && c.stopped.IsZero() && c.reason == "" && c.taken == "" &&
		(c.State == machine.Starting || c.State == machine.Running)
}

// keepStandby maintains the configured number of standby machines until ctx ends.
func (d *driver) keepStandby(ctx context.Context) {
	ticker := time.NewTicker(d.at.look)
	defer ticker.Stop()
	var wait time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !d.kit.Cache().Complete() || time.Now().Before(wait) {
			continue // lists may not show the machines of an earlier process yet
		}
		if after, err := d.fill(ctx); err != nil && ctx.Err() == nil {
			wait = time.Now().Add(max(after, time.Second))
			log.G(ctx).WithError(err).Info("No further machine waits for pods yet")
		}
	}
}

// fill starts missing standby machines, and stops surplus ones. After an error, it returns the wait until the next attempt.
func (d *driver) fill(ctx context.Context) (after time.Duration, err error) {
	have := map[scarcity][]*cellState{}
	d.mu.Lock()
	for _, c := range d.cells {
		if c.isWaiting() {
			kind := scarcity{c.Type, c.Spot}
			have[kind] = append(have[kind], c)
		}
	}
	want := map[scarcity]int64{}
	for _, s := range d.config.Standby {
		want[scarcity{s.Type, s.Spot}] += s.Count
	}
	for kind, some := range have {
		for n, c := range some {
			if int64(n) >= want[kind] {
				c.doomed = true
				d.leave(c)
			}
		}
	}
	d.mu.Unlock()
	for kind, n := range want {
		for range n - int64(len(have[kind])) {
			t, err := d.config.typeNamed(kind.name)
			if err != nil {
				return time.Hour, err
			}
			spec := machine.Spec{Image: d.config.Image, VolumeGiB: d.config.VolumeGiB, PrivateOnly: d.config.PrivateIPOnly, Spot: kind.spot}
			_, err = d.start(ctx, d.specOf(spec, t.machineType(), tokenOf(d.owner, "standby", rand.Text()), &corev1.Pod{}))
			if err != nil {
				after, refused := waitOf(err)
				if !refused { // the start may have made a machine: lists will show it
					after = d.at.seen
				}
				return after, err
			}
		}
	}
	return 0, nil
}

// Create implements service.Driver: it assigns a standby machine to the pod, or starts a new machine. A pod that expects the cluster DNS, and does not
// get it, gets an event.
func (d *driver) Create(ctx context.Context, in *service.Inputs) (instance, error) {
	i, err := d.create(ctx, in)
	if err == nil && expectsClusterDNS(in.Pod) && len(d.clusterDNS()) == 0 && d.in.Recorder != nil {
		d.in.Recorder.Eventf(in.Pod, corev1.EventTypeWarning, "MissingClusterDNS", "spec.dnsPolicy: %s: machine %s resolves names as its network does, as with Default: Services of the cluster have no names there", cmp.Or(in.Pod.Spec.DNSPolicy, corev1.DNSClusterFirst), i.ID)
	}
	return i, err
}

func (d *driver) create(ctx context.Context, in *service.Inputs) (instance, error) {
	w, err := d.config.wishOf(in.Pod)
	if err != nil {
		return instance{}, err
	}
	if d.config.Services && d.refreshServices(ctx) == nil {
		return instance{}, service.NotMade(errdefs.RetryAfter(errors.New("the node does not know the Services of the cluster yet: it needs the right to list and watch EndpointSlices"), servicesAgain))
	}
	bundle, err := d.bundleOf(ctx, in)
	if err != nil {
		return instance{}, service.NotMade(err)
	}
	if i, taken, err := d.takeStandby(ctx, in.Pod, w, bundle); taken || err != nil {
		return i, err
	}
	var refusals []error
	var after time.Duration
	for _, t := range d.order(in.Pod, w) {
		token := tokenOf(d.owner, string(in.Pod.UID), t.Name, fmt.Sprint(w.spec.Spot))
		c, err := d.start(ctx, d.specOf(w.spec, t, token, in.Pod))
		if err == nil {
			d.mu.Lock()
			defer d.mu.Unlock()
			c.bundle = &bundle // its tags name the pod
			return c.instance(), nil
		}
		wait, refused := waitOf(err)
		if !refused {
			return instance{}, err
		}
		refusals = append(refusals, err)
		if after == 0 || wait < after {
			after = wait
		}
		if machine.RefusalOf(err) != machine.NoCapacity {
			break
		}
	}
	return instance{}, service.NotMade(errdefs.RetryAfter(errors.Join(refusals...), after))
}

// order returns the types in the order of attempts. A type with an unanswered start comes first, because that start may have made a machine.
func (d *driver) order(pod *corev1.Pod, w wish) []machine.Type {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, t := range w.types {
		if _, asked := d.asking[tokenOf(d.owner, string(pod.UID), t.Name, fmt.Sprint(w.spec.Spot))]; asked {
			return append([]machine.Type{t}, append(append([]machine.Type{}, w.types[:i]...), w.types[i+1:]...)...)
		}
	}
	return w.types
}
