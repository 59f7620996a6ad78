// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/pack"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/cell"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/delivery"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

// driver implements service.Driver with machines.
type driver struct {
	config    Config
	in        cli.ProviderInput
	owner     identity.Owner
	cloud     machine.Driver
	authority *cell.Authority
	newKey    bool // this process made the authority
	dial      func(token, address string, allowed func(image string) bool) agent
	deliver   func(ctx context.Context, token, host string) error // brings the agent to a machine; nil: the image has the agent
	kit       *service.Provider[instance]
	at        pace
	wake      chan struct{} // holds a value when Work has something to do

	heard chan struct{} // holds a value when an agent has reported

	mu     sync.Mutex
	listed time.Time              // guarded by mu; when the last list began, zero before the first
	cells  map[string]*cellState  // guarded by mu; the machines of the node by ID
	judged time.Time              // guarded by mu; from when unreachable agents count, zero while they do not count
	over   map[types.UID]instance // guarded by mu; ended pods, possibly without a machine
	starts limiter                // guarded by mu
	asking map[string]asking      // guarded by mu; running or unanswered starts, by token
	scarce map[scarcity]time.Time // guarded by mu; until when to avoid a type without capacity
	untold []*cellState           // guarded by mu; machines with failed pods that the cache does not know yet

	slices   discoverylisters.EndpointSliceLister // guarded by mu; nil: the node has not read them
	services *clusterServices                     // guarded by mu; nil: not known yet
}

// clusterServices are the Services of the cluster at one time. It never changes.
type clusterServices struct {
	of   string // the versions of all objects
	data cell.Services
}

// cellState is the state of one machine. The mu of the driver guards its fields.
type cellState struct {
	id string // the ID of the machine, which never changes
	machine.Machine
	pod     identity.Pod // zero: the machine waits for a pod
	agent   agent        // nil: nothing follows the machine
	joined  bool
	brought bool           // the node has delivered the agent
	said    *cell.State    // nil: the agent has not reported yet
	bundle  *podjob.Bundle // the bundle for the machine; nil after the machine has it
	giving  bool           // the machine may already have the pod
	doomed  bool           // the machine must not get a pod
	lost    string         // why the node gave up the machine although the pod may still run; "": it did not
	reason  string         // why the pod ended without a final status of its own; "": it did not
	message string
	began   time.Time        // when this process first saw the machine
	seen    bool             // a list has shown the machine
	silent  time.Time        // when the agent stopped answering; zero while it answers
	taken   string           // why the cloud takes the machine away although the pod may still run; "": it does not
	deleted bool             // the pod is being deleted, so List does not report its end
	over    time.Time        // when the node first saw that the pod had ended
	stopBy  time.Time        // when to stop the machine, even if the pod runs; zero: never
	stopped time.Time        // when the node asked for the stop of the machine
	knows   *clusterServices // the Services that the machine knows
	rejects *clusterServices // the Services that the machine rejected last, or that did not reach it
	refused time.Time        // since when the machine rejects the Services while a pod waits for it; zero: it does not
	asked   time.Time        // when it was asked to take them, without success since then
	step    chan struct{}    // holds a value when the follower has work
}

func (c *cellState) instance() instance {
	i := instance{Machine: c.Machine, pod: c.pod, reason: c.reason, message: c.message, unused: c.doomed, taken: c.taken}
	if c.said != nil && c.said.Pod == c.pod.UID {
		i.said = c.said.Status
	}
	return i
}

// take records a machine from an answer of the cloud. The caller holds d.mu.
func (d *driver) take(m machine.Machine) *cellState {
	c := d.cells[m.ID]
	if c == nil {
		now := time.Now()
		c = &cellState{id: m.ID, began: now, silent: now, step: make(chan struct{}, 1)}
		d.cells[m.ID] = c
	}
	if m.Address == "" {
		m.Address = c.Address
	}
	if m.IP == "" {
		m.IP = c.IP
	}
	if m.State == machine.Unknown {
		m.State = c.State
	}
	c.Machine = m
	if of, ok := d.owner.Owned(m.Tags); ok {
		c.pod = of
	}
	if (m.State == machine.Gone || m.State == machine.Stopping && (m.Reason == machine.ReasonPreempted || c.lost != "")) && !c.hasEnded() && c.reason == "" && !c.doomed {
		c.reason, c.message = reasonNodeLost, cmp.Or(c.lost, "its machine has ended")
		if m.Reason == machine.ReasonPreempted || c.taken != "" {
			c.reason, c.message = machine.ReasonPreempted, "the cloud has taken its machine away"
		}
		if m.Message != "" {
			c.message += ": " + m.Message
		}
	}
	return c
}

func (c *cellState) hasEnded() bool {
	return c.said != nil && c.said.Pod == c.pod.UID && c.said.Status != nil && c.said.Status.Ended
}

// List implements service.Driver. The first list waits for the agents of earlier machines, so that no running pod seems to start again.
func (d *driver) List(ctx context.Context) ([]instance, error) {
	asked := time.Now()
	all, err := d.cloud.List(ctx, d.ownerTags())
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range all {
		if d.newKey && d.listed.IsZero() && m.State != machine.Gone && m.Tags[tagSigned] != "" {
			return nil, fmt.Errorf("machine %s belongs to another key of this node, and the key in authorityFile %s is new: put the old key there, or end the machines of the node, and start again", m.ID, d.config.AuthorityFile)
		}
	}
	there := map[string]bool{}
	for _, m := range all {
		there[m.ID] = true
		c := d.take(m)
		c.seen = true
		if m.State == machine.Gone && c.stopped.IsZero() {
			d.leave(c) // removes the leftovers of the machine
		}
		if (m.State == machine.Starting || m.State == machine.Running) && !c.stopped.IsZero() && asked.Sub(c.stopped) > d.at.stopAgain {
			d.leave(c) // the cloud has not stopped the machine
		}
	}
	for id, c := range d.cells {
		if !there[id] && (c.seen || asked.Sub(c.began) > d.at.seen) && c.began.Before(asked) {
			if c.lost != "" && c.reason == "" && !c.hasEnded() {
				c.reason, c.message = reasonNodeLost, c.lost
			}
			if i := c.instance(); c.pod.UID != "" && !c.deleted && ended(i) && d.over[c.pod.UID].ID == "" {
				d.over[c.pod.UID] = i
			}
			delete(d.cells, id)
		}
	}
	d.nudge()
	first := d.listed.IsZero()
	d.listed = asked
	if first {
		d.awaitAgents(ctx)
	}
	var instances []instance
	has := map[types.UID]bool{}
	for id := range there {
		if c := d.cells[id]; c != nil && c.pod.UID != "" {
			instances = append(instances, c.instance())
			has[c.pod.UID] = true
		}
	}
	for uid, i := range d.over {
		if !has[uid] {
			i.State = machine.Gone
			instances = append(instances, i)
		}
	}
	return instances, nil
}

// awaitAgents waits up to d.at.speak until the agents of all running machines with pods have reported. The caller holds d.mu; awaitAgents releases it
// while it waits.
func (d *driver) awaitAgents(ctx context.Context) {
	timer := time.NewTimer(d.at.speak)
	defer timer.Stop()
	for {
		silent := false
		for _, c := range d.cells {
			silent = silent || c.State == machine.Running && c.pod.UID != "" && c.said == nil
		}
		if !silent {
			return
		}
		d.mu.Unlock()
		over := false
		select {
		case <-ctx.Done():
			over = true
		case <-timer.C:
			over = true
		case <-d.heard:
		}
		d.mu.Lock()
		if over {
			return
		}
	}
}

// nudge wakes Work. It never blocks.
func (d *driver) nudge() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Find implements service.Driver.
func (d *driver) Find(ctx context.Context, pod *corev1.Pod) (instance, bool, error) {
	all, err := d.cloud.List(ctx, d.owner.Tags(identity.Of(pod)))
	if err != nil {
		return instance{}, false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var found *cellState
	for _, m := range all {
		if c := d.take(m); m.State != machine.Gone && (found == nil || m.Created.Before(found.Created)) {
			found = c
		}
	}
	if found == nil {
		for _, c := range d.cells { // the lists may not show a new machine yet
			if c.pod.UID == pod.UID && c.State != machine.Gone && !c.doomed {
				found = c
			}
		}
	}
	d.nudge()
	if found == nil {
		return instance{}, false, nil
	}
	return found.instance(), true, nil
}

// Refuse implements service.Refuser.
func (d *driver) Refuse(pod *corev1.Pod) error { return d.config.check(pod) }

// Stop implements service.Driver. It orders a running pod to stop within its grace period. The node stops the machine when the pod has ended or the
// grace period has expired. If the machine has not received the pod, Stop stops the machine at once.
func (d *driver) Stop(ctx context.Context, pod *corev1.Pod, i instance) error {
	d.mu.Lock()
	c := d.cells[i.ID]
	if c == nil || c.State == machine.Gone {
		delete(d.over, i.pod.UID)
		d.mu.Unlock()
		return nil
	}
	c.deleted = true
	switch {
	case c.hasEnded() || c.reason != "":
		d.leave(c)
		d.mu.Unlock()
		return nil
	case !c.giving && (c.bundle != nil || c.said != nil && c.said.Pod == ""):
		c.doomed, c.bundle = true, nil
		d.leave(c)
		d.mu.Unlock()
		return nil
	}
	by := time.Now().Add(podspec.Grace(pod) + d.at.end)
	if c.stopBy.IsZero() || by.Before(c.stopBy) {
		c.stopBy = by
	}
	grace := max(0, time.Until(c.stopBy)-d.at.end)
	a := c.agent
	d.nudge()
	d.mu.Unlock()
	if a == nil {
		return nil // Work stops the machine when the grace period has expired
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	if err := a.Stop(ctx, grace); err != nil { // step repeats the order when the agent answers, and Work stops the machine at the deadline
		log.G(ctx).WithError(err).WithField("machine", i.ID).Info("The agent of a machine has not taken the order to stop its pod")
	}
	return nil
}

// leave makes the kit stop a machine. The caller holds d.mu.
func (d *driver) leave(c *cellState) {
	c.stopped = time.Now()
	d.kit.Leave(c.id)
}

// fail ends a pod that has reported no final status. The caller holds d.mu.
func (d *driver) fail(ctx context.Context, c *cellState, reason, message string) {
	c.reason, c.message, c.bundle = reason, message, nil
	log.G(ctx).WithField("machine", c.id).WithField("pod", c.pod.Namespace+"/"+c.pod.Name).Warn(message)
	d.untold = append(d.untold, c)
	d.nudge()
}

// Remove implements service.Remover: it stops a machine.
func (d *driver) Remove(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	return d.cloud.Stop(ctx, id)
}

// Identify implements service.Driver.
func (d *driver) Identify(i instance) (poll.Identity, bool) {
	return poll.Identity{Namespace: i.pod.Namespace, Name: i.pod.Name, UID: i.pod.UID, ID: i.ID, CreatedAt: i.Created}, i.pod.UID != ""
}

// Ended implements service.Ender.
func (d *driver) Ended(i instance) bool { return ended(i) }

// Status implements service.Driver.
func (d *driver) Status(pod *corev1.Pod, i instance) corev1.PodStatus {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return pod.Status // a final status stays
	}
	s := statusOf(pod, i)
	s.QOSClass = pod.Status.QOSClass
	return s
}

// Renew implements service.Renewer: it sends the agent the current content of the pod's volumes.
func (d *driver) Renew(ctx context.Context, in *service.Inputs, i instance) error {
	if ended(i) {
		return nil
	}
	now, err := d.kit.Inputs(ctx, in.Pod)
	if err != nil {
		return err
	}
	bundle, err := d.bundleOf(ctx, now)
	if err != nil {
		return err
	}
	d.mu.Lock()
	c := d.cells[i.ID]
	var a agent
	if c != nil {
		a = c.agent
		if !c.giving && c.bundle != nil {
			c.bundle, a = &bundle, nil
		}
	}
	d.mu.Unlock()
	in.RenewAt = now.RenewAt
	if a == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	return a.Renew(ctx, bundle)
}

// Update implements service.Updater: it sends the agent the changed content of the pod's volumes.
func (d *driver) Update(ctx context.Context, pod *corev1.Pod, i instance) error {
	return d.Renew(ctx, &service.Inputs{Pod: pod}, i)
}

// clusterDNS returns the DNS servers of the cluster, or nothing if machines cannot reach them.
func (d *driver) clusterDNS() []string {
	if !d.config.Services || len(d.config.ClusterDNS) > 0 || d.in.Services == nil {
		return d.config.ClusterDNS
	}
	s, err := d.in.Services.Services("kube-system").Get("kube-dns")
	if err != nil || s.Spec.ClusterIP == "" || s.Spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	return []string{s.Spec.ClusterIP}
}

// bundleOf returns the bundle of a pod for its machine.
func (d *driver) bundleOf(ctx context.Context, in *service.Inputs) (podjob.Bundle, error) {
	b, err := pack.Bundle(ctx, in, d.in, d.config.runtime())
	b.ClusterDNS, b.DeviceKind = d.clusterDNS(), d.config.deviceKind(in.Pod)
	return b, err
}

// agentOf returns the agent of the machine that runs a pod.
func (d *driver) agentOf(i instance) (agent, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.cells[i.ID]
	switch {
	case c == nil || c.State == machine.Gone || c.State == machine.Stopping:
		return nil, errdefs.InvalidInputf("machine %s has ended, and its content is gone: keepEnded of the provider's configuration says how long ended machines stay", i.ID)
	case c.agent == nil || !c.joined:
		return nil, fmt.Errorf("the agent of machine %s does not answer yet", i.ID)
	}
	return c.agent, nil
}

// specOf completes the specification of a machine for a pod, or for a standby machine if the pod is empty.
func (d *driver) specOf(spec machine.Spec, t machine.Type, token string, pod *corev1.Pod) machine.Spec {
	spec.Type, spec.Token = t, token
	spec.Tags = maps.Clone(d.config.Tags)
	if spec.Tags == nil {
		spec.Tags = map[string]string{}
	}
	name, uid := "virtual-kubelet standby", pod.GetUID()
	if uid != "" {
		name = nameOf(identity.Of(pod))
		maps.Copy(spec.Tags, d.owner.Tags(identity.Of(pod)))
	} else {
		maps.Copy(spec.Tags, d.ownerTags())
		spec.Tags[tagStandby] = "true"
	}
	spec.Tags["Name"], spec.Tags[tagToken] = name, token
	data := d.authority.UserData(token, uid, d.config.OrphanAfter.Duration, d.config.AbandonedAfter.Duration)
	data.Spot = spec.Spot && d.config.EC2 != nil
	if spec.UserData = data.Marshal(); d.config.SSH != nil {
		spec.UserData = delivery.UserData(*d.config.SSH, d.sshKeys(token), spec.UserData)
	}
	return spec
}

// sshKeys returns the keys for the delivery of the agent to the machine with a token.
func (d *driver) sshKeys(token string) (k delivery.Keys) {
	k.Host, k.Node = d.authority.SSHKeys(token)
	return k
}

// nameOf returns the value of the tag Name for a pod. Nova takes 255 characters, and EC2 takes 256.
func nameOf(pod identity.Pod) string {
	name := pod.Namespace + "/" + pod.Name
	return name[:min(len(name), 255)]
}

// ownerTags returns the tags of all machines of the node.
func (d *driver) ownerTags() map[string]string {
	return map[string]string{identity.TagCluster: d.owner.Cluster, identity.TagNode: d.owner.Node}
}

// setTags adds tags to a copy of the map, because the map is shared.
func (c *cellState) setTags(more map[string]string) {
	tags := maps.Clone(c.Tags)
	maps.Copy(tags, more)
	c.Tags = tags
}

// poke wakes the follower of a machine. It never blocks.
func (c *cellState) poke() {
	select {
	case c.step <- struct{}{}:
	default:
	}
}

// scarcity is a kind of machine that the cloud may lack.
type scarcity struct {
	name string
	spot bool
}

// asking is a running or unanswered start.
type asking struct {
	kind  machine.Type
	price int64
	at    time.Time
}

// limiter limits the rate of starts, and allows a burst of some starts.
type limiter struct {
	have float64
	last time.Time
}

// take takes one start and returns 0, or returns the time until a start is available.
func (l *limiter) take(now time.Time, perMinute int64) (wait time.Duration) {
	most := max(1, float64(perMinute)/6) // the starts of ten seconds
	if l.last.IsZero() {
		l.have = most
	} else {
		l.have = min(most, l.have+now.Sub(l.last).Minutes()*float64(perMinute))
	}
	l.last = now
	if l.have < 1 {
		return max(time.Millisecond, time.Duration((1-l.have)/float64(perMinute)*float64(time.Minute))) // 0 would mean a start
	}
	l.have--
	return 0
}
