// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
)

// The budget of requests. A list returns the groups and the progress of their creation, but not the states of containers. Only a
// request for one group returns these states.
//
// At rest there is a list each listEvery: 3 a minute, with one page or more. The rest of Config.Requests.AtRest (15) is for requests
// for groups that have not ended. With one page these are 12 a minute, so with n pods an end is seen after at most n/12 minutes.
// Groups of Jobs, groups with a readiness probe and groups that do not start are requested four times as often.
//
// After a create or a delete, there is a list each busyEvery for all such groups, or pageEvery for each page of the list if that is
// longer. A new group is requested when its creation has finished, then after 2, 4, 8 … seconds until all its containers run. These
// requests are not part of the budget of the other groups. So each pod costs a create, a delete, one or two requests for its group,
// and its share of lists.
const (
	busyEvery, listEvery = 2 * time.Second, 20 * time.Second
	pageEvery            = 500 * time.Millisecond
	// haste is how long a group counts as starting or stopping. A slower group waits for something, perhaps for days.
	haste = 2 * time.Minute
	// staleAfter is the maximum time without a list while the pages of a list alone exceed the budget.
	staleAfter = 2 * time.Minute
	// together is the maximum number of concurrent requests for groups. It is also the number of missing groups that are requested before
	// a list is trusted.
	together = 8
	// mostFailing is the number of unreadable groups, without a readable one, at which ACI counts as unreachable.
	mostFailing = 3
)

// instance is a group of this node in its last known state.
type instance struct {
	group *aci.ContainerGroup
	pod   identity.Pod
	at    time.Time // when ACI reported this state
	ends  bool      // its containers are being stopped or restarted
}

// view is an instance with the history of its requests.
type view struct {
	instance
	provisioning string        // by the last list
	began        time.Time     // when the group was made, first seen, or asked to stop
	looked       time.Time     // the last request for the group; zero if there was none
	again        time.Duration // the wait before the next request for an unsettled group
	failing      bool          // the last request for the group failed
	stopping     bool
	ran          time.Time // the latest start of a container before its end was requested
	lacked       int       // lists in a row without the stopping group
	absent       bool      // ACI reported that the group does not exist
}

// groups reads the groups of a node from ACI.
type groups struct {
	client *client
	owner  identity.Owner
	budget *rate.Limiter      // requests at rest
	gone   func(identity.Pod) // called when a stopped group no longer exists
	eager  bool               // request every group in each round, for tests that do not count requests

	mu     sync.Mutex       // not held during requests to ACI
	views  map[string]*view // guarded by mu; keyed by the names of groups
	listed time.Time        // guarded by mu; time of the last list
	pages  int              // guarded by mu; of the last list
	failed bool             // guarded by mu; the last request failed
}

// newGroups returns groups with a budget of atRest requests a minute. It calls gone for a stopped group that no longer exists.
func newGroups(c *client, owner identity.Owner, atRest int, gone func(identity.Pod)) *groups {
	budget := rate.NewLimiter(rate.Limit(float64(atRest)/60), max(1, atRest/3))
	return &groups{client: c, owner: owner, budget: budget, gone: gone, views: map[string]*view{}, pages: 1}
}

// affords reports whether the budget allows n requests.
func (g *groups) affords(n int) bool { return g.budget.Tokens() >= float64(n) }

// spend removes n requests from the budget, even if the budget has fewer.
func (g *groups) spend(n int) {
	for range n {
		g.budget.Reserve()
	}
}

// podOf returns the pod of a group, or false if the group is not of this node.
func podOf(owner identity.Owner, group *aci.ContainerGroup) (identity.Pod, bool) {
	tags := map[string]string{}
	for key, v := range group.Tags {
		tags[key] = value(v)
	}
	return owner.Owned(tags)
}

// made records a group that ACI has accepted.
func (g *groups) made(pod identity.Pod, group *aci.ContainerGroup) instance {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	v := &view{instance: instance{group: group, pod: pod, at: now}, began: now, again: busyEvery}
	g.views[value(group.Name)] = v
	return v.instance
}

// stop records that ACI has accepted the deletion of a group.
func (g *groups) stop(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if v := g.views[name]; v != nil && !v.stopping {
		v.stopping, v.began = true, time.Now()
	}
}

// expect records that ACI has accepted to stop or to restart the containers of a group, so that the group is requested soon. Until the
// group has ended or its containers run again, it keeps its last state, but is not ready. In between, its containers may be in any
// state.
func (g *groups) expect(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if v := g.views[name]; v != nil {
		v.ends, v.ran, v.began, v.again = true, lastStart(v.group), time.Now(), busyEvery
	}
}

// lastStart returns when the last container of a group started.
func lastStart(group *aci.ContainerGroup) (last time.Time) {
	for _, c := range value(group.Properties).Containers {
		if at := value(value(value(value(c.Properties).InstanceView).CurrentState).StartTime); at.After(last) {
			last = at
		}
	}
	return last
}

// list returns all groups of the node in their last known state. The budget decides which groups it requests again, and whether it
// lists all groups.
func (g *groups) list(ctx context.Context) ([]instance, error) {
	all, err := g.round(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failed = err != nil && !errors.Is(err, poll.Partial)
	return all, err
}

func (g *groups) round(ctx context.Context) ([]instance, error) {
	asked := time.Now()
	var names map[string]bool
	var missing []string
	list := g.wants(asked)
	if list {
		var err error
		if names, missing, err = g.names(ctx); err != nil {
			return nil, err
		}
	}
	if err := g.look(ctx, append(missing, g.due(asked)...)); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []instance
	for name, v := range g.views {
		seen := !v.absent && !v.looked.Before(asked) // lists are late: a group seen after the list was requested still exists
		if names[name] || seen || list && !v.absent && !v.stopping {
			all = append(all, v.instance)
		} else if list && v.stopping {
			if v.lacked++; v.lacked >= poll.GoneAfter { // before that, the next list must be soon too
				delete(g.views, name)
			}
		}
	}
	if !list {
		return all, poll.Partial
	}
	return all, nil
}

// wants reports whether a list is due.
func (g *groups) wants(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	since := now.Sub(g.listed)
	return g.eager || g.failed || since >= staleAfter || since >= pageEvery*time.Duration(g.pages) && g.hasty(now) || since >= listEvery-busyEvery && g.affords(g.pages)
}

// hasty reports whether a group is starting or stopping. g.mu is held.
func (g *groups) hasty(now time.Time) bool {
	for _, v := range g.views {
		if now.Sub(v.began) < haste && (v.stopping || !v.settled()) {
			return true
		}
	}
	return false
}

// names lists the groups. missing are the groups to request before the list is trusted: unknown groups, and known groups that the list
// lacks.
func (g *groups) names(ctx context.Context) (names map[string]bool, missing []string, err error) {
	asked := time.Now()
	groups, pages, err := g.client.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	names = map[string]bool{}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.hasty(asked) {
		g.spend(pages)
	}
	for _, group := range groups {
		pod, ours := podOf(g.owner, group)
		if name := value(group.Name); ours && name == g.owner.Name(pod) {
			names[name] = true
			v := g.views[name]
			if v == nil {
				missing = append(missing, name)
			} else if v.lacked = 0; group.Properties != nil {
				v.provisioning = value(group.Properties.ProvisioningState)
			}
		}
	}
	lacks := 0
	for name, v := range g.views {
		switch {
		case names[name]:
		case v.stopping: // round counts stopping groups
		case v.absent:
			delete(g.views, name)
		case lacks < together && (v.settled() || asked.Sub(v.began) > haste): // a new group may only be late
			lacks++
			missing = append(missing, name)
		}
	}
	g.listed, g.pages = asked, pages
	return names, missing, nil
}

// settled reports whether all containers of a group run, or it has ended.
func (v *view) settled() bool {
	state := stateOf(v.group)
	if over(state) {
		return true
	}
	if v.changed() || v.ends {
		return false
	}
	return state == stateRunning && !slices.ContainsFunc(v.group.Properties.Containers, func(c *aci.Container) bool {
		now := value(c.Properties.InstanceView).CurrentState
		return now == nil || value(now.State) == "Waiting"
	})
}

// changed reports whether the list shows another state than the last request for the group.
func (v *view) changed() bool {
	return v.provisioning != "" && v.provisioning != value(v.group.Properties.ProvisioningState)
}

// urgent reports whether a group must be requested more often than other running groups.
func (v *view) urgent() bool {
	p := v.group.Properties
	return !v.settled() || p.RestartPolicy != nil && *p.RestartPolicy != aci.ContainerGroupRestartPolicyAlways ||
		slices.ContainsFunc(p.Containers, func(c *aci.Container) bool { return c.Properties.ReadinessProbe != nil })
}

// due returns the groups to request now: starting groups that may have changed, and the other groups that have waited longest.
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
		case v.stopping: // lists show the end of a stopping group
		case over(stateOf(v.group)):
		case !v.settled() && now.Sub(v.began) < haste:
			creating := v.provisioning == "" || !over(v.provisioning)
			if v.changed() && !creating || since >= v.again && (!creating || v.again >= listEvery) {
				names = append(names, name)
			}
			if since >= v.again {
				v.again = min(2*v.again, listEvery)
			}
		default:
			if v.urgent() {
				since *= 4
			}
			others = append(others, waits{name, since})
		}
	}
	slices.SortFunc(others, func(a, b waits) int { return cmp.Compare(b.since, a.since) })
	for _, w := range others {
		if !g.affords(1) {
			break
		}
		g.spend(1)
		names = append(names, w.name)
	}
	return names
}

// look requests groups one by one. It leaves a missing group to the lists, unless the group was stopped. An unreadable group does not
// affect the others. If ACI throttles, look makes no more requests.
func (g *groups) look(ctx context.Context, names []string) error {
	some, ctx := errgroup.WithContext(ctx)
	some.SetLimit(together)
	var mu sync.Mutex
	var failed int
	var last error
	for _, name := range names {
		some.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			group, err := g.client.get(ctx, name)
			switch {
			case err == nil || errdefs.IsNotFound(err):
				g.saw(name, group)
				return nil
			case ctx.Err() != nil || azlogin.StatusOf(err) == http.StatusTooManyRequests || !g.unreadable(ctx, name, err):
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			failed, last = failed+1, err
			return nil
		})
	}
	if err := some.Wait(); err != nil {
		return err
	}
	if failed > 0 && failed == len(names) && g.allFail() {
		return last
	}
	return nil
}

// unreadable records that a group cannot be read. It returns false for an unknown group, because the list is incomplete without it.
func (g *groups) unreadable(ctx context.Context, name string, err error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.views[name]
	if v == nil {
		return false
	}
	if !v.failing {
		log.G(ctx).WithError(err).WithField("pod", v.pod.Namespace+"/"+v.pod.Name).WithField("podUID", string(v.pod.UID)).Warn("The pod stays as it was seen last: its container group cannot be read")
	}
	v.failing, v.looked = true, time.Now() // the other groups come before the next request for this group
	return true
}

// allFail reports whether so many groups cannot be read that ACI counts as unreachable.
func (g *groups) allFail() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	failing, all := 0, 0
	for _, v := range g.views {
		if v.failing {
			failing++
		}
		if !over(stateOf(v.group)) {
			all++
		}
	}
	return failing >= min(mostFailing, all)
}

// saw records the answer of ACI about a group. Nil means that the group does not exist.
func (g *groups) saw(name string, group *aci.ContainerGroup) {
	g.mu.Lock()
	now := time.Now()
	v := g.views[name]
	switch {
	case group == nil && v != nil && v.stopping:
		delete(g.views, name)
		defer g.gone(v.pod)
	case group == nil && v != nil:
		v.absent, v.failing, v.looked = true, false, now
	case group != nil && group.Properties != nil:
		if v == nil {
			pod, _ := podOf(g.owner, group)
			v = &view{instance: instance{pod: pod}, began: now, again: busyEvery}
			g.views[name] = v
		}
		v.looked, v.absent, v.failing = now, false, false
		if v.ends && now.Sub(v.began) < haste && !over(stateOf(group)) && !lastStart(group).After(v.ran) {
			break
		}
		v.group, v.at, v.ends, v.provisioning = group, now, false, value(group.Properties.ProvisioningState)
	}
	g.mu.Unlock()
}
