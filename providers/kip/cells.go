// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/cell"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

// Work implements service.Worker: it follows the agents of machines, stops expired machines, and maintains the standby machines.
func (d *driver) Work(ctx context.Context) {
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { d.keepStandby(ctx) })
	followed := map[string]context.CancelFunc{}
	ticker := time.NewTicker(d.at.look)
	defer ticker.Stop()
	for {
		d.refreshServices(ctx)
		fresh, untold := d.due(ctx, followed)
		for _, c := range untold {
			d.tell(ctx, c)
		}
		for _, c := range fresh {
			following, cancel := context.WithCancel(ctx)
			followed[c.id] = cancel
			beside.Go(func() { defer cancel(); d.follow(following, c) })
		}
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		case <-ticker.C:
		}
	}
}

// due stops expired machines and cancels the followers of gone machines. It returns machines without a follower, and machines with failed pods to report.
func (d *driver) due(ctx context.Context, followed map[string]context.CancelFunc) (fresh, untold []*cellState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, cancel := range followed {
		if c := d.cells[id]; c == nil || c.State == machine.Gone {
			cancel()
			delete(followed, id)
		}
	}
	now := time.Now()
	d.judge(now)
	for id, c := range d.cells {
		if c.State == machine.Gone {
			continue
		}
		if c.over.IsZero() && c.pod.UID != "" && (c.hasEnded() || c.reason != "") {
			c.over = now
		}
		if c.stopped.IsZero() {
			switch {
			case !c.stopBy.IsZero() && (c.hasEnded() || now.After(c.stopBy)):
				d.leave(c)
			case !c.over.IsZero() && now.Sub(c.over) >= d.config.KeepEnded.Duration:
				d.leave(c)
			case c.reason != "" || c.hasEnded():
			case c.Tags[tagSigned] == "" && now.Sub(c.begun()) > d.config.StartWithin.Duration:
				d.fail(ctx, c, reasonStart, fmt.Sprintf("the agent of machine %s has not answered within %s", id, d.config.StartWithin.Duration))
				d.leave(c)
			case !c.silent.IsZero() && !d.judged.IsZero() && min(now.Sub(c.silent), now.Sub(d.judged)) > d.config.SilentAfter.Duration:
				c.lost = fmt.Sprintf("the agent of machine %s has been silent for %s, while the cloud says that the machine is there", id, d.config.SilentAfter.Duration)
				log.G(ctx).WithField("machine", id).WithField("pod", c.pod.Namespace+"/"+c.pod.Name).Warn(c.lost)
				d.leave(c)
			}
		}
		if c.pod.UID != "" && c.said != nil && c.said.Pod == "" {
			c.poke() // the agent may have reported before the cache knew the pod
		}
		if _, is := followed[id]; !is && c.Address != "" && c.State != machine.Stopping {
			fresh = append(fresh, c)
		}
	}
	untold, d.untold = d.untold, nil
	return fresh, untold
}

// judge sets d.judged, the time from which an unreachable agent counts against its machine. The time does not count while no agent answers, because
// the network of this node may be down, or while the cloud does not answer. It then starts again, to give agents time to reconnect. The caller holds
// d.mu.
func (d *driver) judge(now time.Time) {
	speaks := false
	for _, c := range d.cells {
		speaks = speaks || c.State != machine.Gone && c.Tags[tagSigned] != "" && c.silent.IsZero()
	}
	switch counts := speaks && now.Sub(d.listed) < listedWithin; {
	case !counts:
		d.judged = time.Time{}
	case d.judged.IsZero():
		d.judged = now
	}
}

// listedWithin is the maximum age of the last list for giving up a silent machine.
const listedWithin = time.Minute

// begun returns the start time of a machine: the later of the times from the cloud and from this process, because one clock may be wrong.
func (c *cellState) begun() time.Time {
	if c.Created.After(c.began) {
		return c.Created
	}
	return c.began
}

// follow maintains the connection with the agent of a machine until ctx ends.
func (d *driver) follow(ctx context.Context, c *cellState) {
	d.mu.Lock()
	address := c.Address
	a := d.dial(c.Tags[tagToken], address, func(image string) bool { return d.allows(c, image) })
	c.agent = a
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		c.agent = nil
		d.mu.Unlock()
		a.Close()
	}()
	wait, complained := d.at.again, false
	for ctx.Err() == nil {
		began := time.Now()
		err := d.attend(ctx, c, a)
		if time.Since(began) > time.Minute {
			wait, complained = d.at.again, false
		}
		if err != nil && ctx.Err() == nil && !complained && time.Since(c.began) > 30*time.Second {
			complained = true
			log.G(ctx).WithError(err).WithField("machine", c.id).Warn("The agent of a machine does not answer")
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, 5*time.Second)
	}
}

// allows reports whether a machine may have an image. A machine may have only the images of its pod.
func (d *driver) allows(c *cellState, image string) bool {
	d.mu.Lock()
	uid := c.pod.UID
	d.mu.Unlock()
	pod, _, ok := d.kit.Cache().Get(uid)
	if !ok {
		return false
	}
	whole := func(image string) string {
		if ref, err := name.ParseReference(image); err == nil {
			return ref.Name()
		}
		return image
	}
	for _, k := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if whole(k.Image) == whole(image) {
			return true
		}
	}
	return false
}

// attend talks to an agent until the connection ends.
func (d *driver) attend(ctx context.Context, c *cellState, a agent) error {
	d.mu.Lock()
	joined, signed := c.joined, c.Tags[tagSigned]
	d.mu.Unlock()
	if !joined {
		limited, cancel := context.WithTimeout(ctx, requestTime)
		err := a.Join(limited, signed, func(ctx context.Context, key string) error {
			if err := d.cloud.Tag(ctx, c.id, map[string]string{tagSigned: key}); err != nil {
				return err
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			c.setTags(map[string]string{tagSigned: key})
			return nil
		})
		cancel()
		if err != nil && signed == "" && d.deliver != nil {
			return d.bring(ctx, c, err)
		}
		if err != nil {
			return fmt.Errorf("sign the certificate of the machine: %w", err)
		}
		d.mu.Lock()
		c.joined = true
		d.mu.Unlock()
	}
	d.mu.Lock()
	c.knows = nil // the machine may have started again
	d.mu.Unlock()
	c.poke()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan error, 1)
	go func() {
		err := a.Watch(ctx, func(s cell.State) { d.hear(ctx, c, s) })
		d.mu.Lock()
		if errors.Is(err, cell.ErrStranger) {
			c.joined = false // the certificate may have expired: Join signs the same key again
		}
		if c.silent.IsZero() {
			c.silent = time.Now()
		}
		d.mu.Unlock()
		over <- err
	}()
	for {
		select {
		case err := <-over:
			return err
		case <-c.step:
		}
		if err := d.step(ctx, c, a); err != nil {
			if ctx.Err() == nil {
				log.G(ctx).WithError(err).WithField("machine", c.id).Warn("The machine has not got its pod, or the Services of the cluster, yet")
			}
			cancel()
			return errors.Join(err, <-over)
		}
	}
}

// bring delivers the agent to a machine that does not answer, unless the node has delivered it. The end of a delivery closes the machine's SSH server.
func (d *driver) bring(ctx context.Context, c *cellState, silence error) error {
	d.mu.Lock()
	brought, token, address := c.brought, c.Tags[tagToken], c.Address
	d.mu.Unlock()
	host, _, err := net.SplitHostPort(address)
	if brought || err != nil {
		return errors.Join(fmt.Errorf("sign the certificate of the machine: %w", silence), err)
	}
	if err := d.deliver(ctx, token, host); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c.brought = true
	return nil
}

// hear records the state that an agent reports.
func (d *driver) hear(ctx context.Context, c *cellState, s cell.State) {
	d.mu.Lock()
	first := c.said == nil
	c.said, c.silent = &s, time.Time{}
	if s.Interrupted != "" && c.Spot && c.taken == "" && !c.hasEnded() && c.reason == "" {
		c.taken = fmt.Sprintf("%.200s", strings.ToValidUTF8(s.Interrupted, ""))
		switch {
		case c.giving || s.Pod != "": // step stops the pod
		case c.pod.UID != "":
			d.fail(ctx, c, machine.ReasonPreempted, "the cloud takes its machine away: "+c.taken)
			d.leave(c)
		default:
			c.doomed = true // another machine waits in its place
			d.leave(c)
		}
	}
	if s.Pod != "" && c.pod.UID != "" && s.Pod != c.pod.UID && c.reason == "" {
		d.fail(ctx, c, reasonWrong, fmt.Sprintf("machine %s says that it runs another pod, %s: it is not believed any more", c.id, s.Pod))
		d.leave(c)
	}
	if s.Pod != "" && s.Pod == c.pod.UID {
		c.giving, c.bundle = true, nil
	}
	ended := c.hasEnded()
	d.mu.Unlock()
	if first || ended {
		d.nudge()
	}
	c.poke()
	select {
	case d.heard <- struct{}{}:
	default:
	}
	d.tell(ctx, c)
}

// tell reports the status of a machine's pod to the cache.
func (d *driver) tell(ctx context.Context, c *cellState) {
	d.mu.Lock()
	i := c.instance()
	d.mu.Unlock()
	if i.pod.UID != "" {
		d.kit.Cache().Take(ctx, time.Now(), i)
	}
}

// step does the next action with an agent that answers: it gives the pod to the machine, or stops the pod.
func (d *driver) step(ctx context.Context, c *cellState, a agent) error {
	d.mu.Lock()
	taken, stopBy := c.taken != "" && c.stopBy.IsZero(), c.stopBy
	if taken && c.giving && !c.hasEnded() {
		c.stopBy = time.Now().Add(d.noticeOf(c))
		stopBy = c.stopBy
	}
	give := c.pod.UID != "" && c.said != nil && c.said.Pod == "" && !c.doomed && c.reason == "" && c.lost == "" && c.stopBy.IsZero() && c.taken == ""
	waited, pod := c.Tags[tagStandby] == "true", c.pod
	stop := !c.stopBy.IsZero() && c.said != nil && c.said.Pod == c.pod.UID && c.pod.UID != "" && !c.hasEnded()
	d.mu.Unlock()
	if !stop {
		if known, err := d.sendServices(ctx, c, a, give); err != nil || !known && give {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	switch {
	case give && waited:
		if err := d.tagAs(ctx, c, pod); err != nil {
			return fmt.Errorf("tag the machine as the pod's: %w", err)
		}
		return d.give(ctx, c, a)
	case give:
		return d.give(ctx, c, a)
	case stop:
		return a.Stop(ctx, max(0, time.Until(stopBy)-d.at.end))
	}
	return nil
}

// notice is the time that remains of a cloud's two-minute notice after the agent has seen it.
const notice = 110 * time.Second

// noticeOf returns the time that a pod has to stop when the cloud takes its machine away. The caller holds d.mu.
func (d *driver) noticeOf(c *cellState) time.Duration {
	if pod, _, ok := d.kit.Cache().Get(c.pod.UID); ok {
		return min(notice, podspec.Grace(pod)+d.at.end)
	}
	return notice
}

// give gives a machine its pod. Without a bundle from Create, it reads the pod from the cluster.
func (d *driver) give(ctx context.Context, c *cellState, a agent) error {
	d.mu.Lock()
	bundle, uid := c.bundle, c.pod.UID
	d.mu.Unlock()
	if bundle == nil {
		pod, _, ok := d.kit.Cache().Get(uid)
		if !ok || len(pod.Spec.Containers) == 0 {
			return nil // the cluster does not have the pod: a delete follows
		}
		in, err := d.kit.Inputs(ctx, pod)
		if err != nil {
			return err
		}
		b, err := d.bundleOf(ctx, in)
		if err != nil {
			return err
		}
		bundle = &b
	}
	d.mu.Lock()
	if c.doomed || c.reason != "" || !c.stopBy.IsZero() {
		d.mu.Unlock()
		return nil
	}
	c.giving = true
	d.mu.Unlock()
	err := a.Give(ctx, *bundle)
	if errors.Is(err, cell.ErrTaken) || errdefs.IsInvalidInput(err) {
		d.mu.Lock()
		d.fail(ctx, c, reasonWrong, fmt.Sprintf("machine %s does not take the pod: %s", c.id, strings.TrimSpace(err.Error())))
		d.leave(c)
		d.mu.Unlock()
		return nil
	}
	return err
}
