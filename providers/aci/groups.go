// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"slices"
	"sync"
	"time"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
	"golang.org/x/sync/errgroup"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
)

// The arithmetic of requests. A list says which groups there are and how far their creation has come, and not what their containers do: that is
// what a request for one group is for. At rest there is a list each listEvery, that is 3 a minute, with one page or more, and the rest of
// Config.Requests.AtRest (15) is for the groups that run: 12 a minute with one page, so an end is seen after n/12 minutes with n pods that
// run, and those of Jobs, which are to end, come four times as often as the others. Groups that have ended are not asked for. While pods start or stop there
// is a list each busyEvery for all of them, and a request for a group when its creation has come to an end, then after 2, 4, 8 … seconds
// until all its containers run. So in a pod's life there are a create, a delete, one or two requests for it, and its share of lists.
const (
	busyEvery, listEvery = 2 * time.Second, 20 * time.Second
	// staleAfter is how long a list may be used again while the pages of lists alone are more than the budget.
	staleAfter = 2 * time.Minute
	// together is how many requests for groups are under way at once.
	together = 8
)

// instance is a group of this node as it was seen last.
type instance struct {
	group *aci.ContainerGroup
	pod   identity.Pod
	at    time.Time // when it said so
}

// view is what is known of a group besides.
type view struct {
	instance
	provisioning string        // by the last list
	looked       time.Time     // zero if it was made and not looked at yet
	again        time.Duration // after which an unsettled group is looked at again
	stopping     bool
	absent       bool // ACI said so when it was asked for it
}

// groups reads what ACI has of a node.
type groups struct {
	client *client
	owner  identity.Owner
	budget *budget
	gone   func(identity.Pod) // is told that a group that was stopped is not there
	eager  bool               // looks at every group in each round, for tests of what is not about requests

	mu     sync.Mutex       // not held while ACI is asked
	views  map[string]*view // guarded by mu; by the names of groups
	last   map[string]bool  // guarded by mu; names of the last list
	listed time.Time        // guarded by mu; when it was asked for
	pages  int              // guarded by mu
	failed bool             // guarded by mu; the last request
}

func newGroups(c *client, owner identity.Owner, atRest int, gone func(identity.Pod)) *groups {
	return &groups{client: c, owner: owner, budget: newBudget(atRest), gone: gone, views: map[string]*view{}, pages: 1}
}

// made takes down a group that ACI has accepted.
func (g *groups) made(pod identity.Pod, group *aci.ContainerGroup) instance {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := &view{instance: instance{group, pod, time.Now()}, again: busyEvery}
	g.views[value(group.Name)] = v
	return v.instance
}

// stop takes down that ACI has accepted the deletion of a group.
func (g *groups) stop(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if v := g.views[name]; v != nil {
		v.stopping = true
	}
}

// list returns all groups of the node, each as it was looked at last. Which are looked at anew, is by the arithmetic above.
func (g *groups) list(ctx context.Context) ([]instance, error) {
	all, err := g.round(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failed = err != nil
	return all, err
}

func (g *groups) round(ctx context.Context) ([]instance, error) {
	asked := time.Now()
	names, unknown, err := g.names(ctx)
	if err != nil {
		return nil, err
	}
	if err := g.look(ctx, append(unknown, g.due(time.Now())...)); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []instance
	for name, v := range g.views { // a list may be late, and what was seen since is there
		if names[name] || !v.absent && !v.looked.Before(asked) {
			all = append(all, v.instance)
		}
	}
	return all, nil
}

// names asks which groups there are; unknown are those of which nothing is known.
func (g *groups) names(ctx context.Context) (names map[string]bool, unknown []string, err error) {
	g.mu.Lock()
	if !g.failed && g.settled() && time.Since(g.listed) < staleAfter && !g.budget.has(g.pages) {
		defer g.mu.Unlock()
		return g.last, nil, nil
	}
	g.mu.Unlock()
	asked := time.Now()
	groups, pages, err := g.client.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	g.budget.spend(pages)
	names = map[string]bool{}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, group := range groups {
		tags := map[string]string{}
		for key, v := range group.Tags {
			tags[key] = value(v)
		}
		pod, ours := g.owner.Owned(tags)
		if name := value(group.Name); ours && name == g.owner.Name(pod) {
			names[name] = true
			v := g.views[name]
			if v == nil {
				unknown = append(unknown, name)
			} else if group.Properties != nil {
				v.provisioning = value(group.Properties.ProvisioningState)
			}
		}
	}
	for name, v := range g.views { // what a list lacks that is new may only be late
		if (v.stopping || v.absent) && !names[name] {
			delete(g.views, name)
		}
	}
	g.last, g.listed, g.pages = names, asked, pages
	return names, unknown, nil
}

// settled reports whether no group starts or stops. g.mu is held.
func (g *groups) settled() bool {
	for _, v := range g.views {
		if v.stopping || !v.settled() {
			return false
		}
	}
	return true
}

// settled reports whether all containers of a group run, or it has ended.
func (v *view) settled() bool {
	state := stateOf(v.group)
	if over(state) {
		return true
	}
	if v.provisioning != "" && v.provisioning != value(v.group.Properties.ProvisioningState) {
		return false
	}
	for _, c := range v.group.Properties.Containers {
		if c.Properties.InstanceView == nil || c.Properties.InstanceView.CurrentState == nil || value(c.Properties.InstanceView.CurrentState.State) == "Waiting" {
			return false
		}
	}
	return state == stateRunning
}

// due are the groups to look at now: those that start, when something may have changed, and of the others those that wait longest.
func (g *groups) due(now time.Time) (names []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	type waits struct {
		name  string
		since time.Duration
	}
	var others []waits
	for name, v := range g.views {
		since := now.Sub(v.looked)
		switch {
		case g.eager:
			names = append(names, name)
		case v.stopping: // lists tell when it is gone
		case over(stateOf(v.group)):
		case !v.settled():
			creating := v.provisioning == "" || !over(v.provisioning)
			if changed := v.provisioning != value(v.group.Properties.ProvisioningState); changed && !creating || since >= v.again && (!creating || v.again >= listEvery) {
				names = append(names, name)
			}
			if since >= v.again {
				v.again = min(2*v.again, listEvery)
			}
		default:
			if v.group.Properties.RestartPolicy != nil && *v.group.Properties.RestartPolicy != aci.ContainerGroupRestartPolicyAlways {
				since *= 4
			}
			others = append(others, waits{name, since})
		}
	}
	slices.SortFunc(others, func(a, b waits) int { return int(b.since/time.Millisecond - a.since/time.Millisecond) })
	for _, w := range others {
		if !g.budget.has(1) {
			break
		}
		g.budget.spend(1)
		names = append(names, w.name)
	}
	return names
}

// look asks for groups one by one. A group that is not there is left to the lists, unless it was stopped.
func (g *groups) look(ctx context.Context, names []string) error {
	var some errgroup.Group
	some.SetLimit(together)
	for _, name := range names {
		some.Go(func() error {
			group, err := g.client.get(ctx, name)
			if err != nil && !errdefs.IsNotFound(err) {
				return err
			}
			g.saw(name, group)
			return nil
		})
	}
	return some.Wait()
}

// saw takes down what ACI says of a group; nil is one that is not there.
func (g *groups) saw(name string, group *aci.ContainerGroup) {
	g.mu.Lock()
	v := g.views[name]
	switch {
	case group == nil && v != nil && v.stopping:
		delete(g.views, name)
		defer g.gone(v.pod)
	case group == nil && v != nil:
		v.absent, v.looked = true, time.Now()
	case group != nil && group.Properties != nil:
		if v == nil {
			tags := map[string]string{}
			for key, t := range group.Tags {
				tags[key] = value(t)
			}
			pod, _ := g.owner.Owned(tags)
			v = &view{instance: instance{pod: pod}, again: busyEvery}
			g.views[name] = v
		}
		now := time.Now()
		v.group, v.at, v.looked, v.absent, v.provisioning = group, now, now, false, value(group.Properties.ProvisioningState)
	}
	g.mu.Unlock()
}

// budget is a number of requests a minute.
type budget struct {
	mu     sync.Mutex
	minute float64
	left   float64   // guarded by mu
	at     time.Time // guarded by mu
}

func newBudget(minute int) *budget {
	return &budget{minute: float64(minute), left: float64(minute) / 3, at: time.Now()}
}

// has reports whether n requests can be spent.
func (b *budget) has(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.left = min(b.left+now.Sub(b.at).Minutes()*b.minute, b.minute/3)
	b.at = now
	return b.left >= float64(n)
}

// spend takes n away, also those that are not there.
func (b *budget) spend(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left -= float64(n)
}
