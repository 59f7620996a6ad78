// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
)

const (
	// pageOfStates and pageOfGroups are how many groups an answer has at most.
	pageOfStates, pageOfGroups = 200, 20
	// maxPages bounds a list: an account has fewer groups.
	maxPages = 500
	// sinceSlack is how much further back than asked for changes are read: clocks differ, and answers are late.
	sinceSlack = 10 * time.Second
	// expectedFor is how long a group that was asked for may be absent from lists. After that its tags say whose it is.
	expectedFor = 10 * time.Minute
)

// instance is a group of this node.
type instance struct {
	seen
	pod     identity.Pod
	created time.Time // zero if nobody asked
}

// expectation is a group that was asked for.
type expectation struct {
	pod identity.Pod
	at  time.Time
}

// groups reads what ECI has of a node.
type groups struct {
	client *client
	owner  identity.Owner
	// hasInits reports whether a pod has init containers, of which states tell nothing.
	hasInits func(identity.Pod) bool
	// inCluster are groups that run as the cluster has it. Nil: it knows none.
	inCluster func() []running

	mu       sync.Mutex             // not held while ECI is asked
	expected map[string]expectation // guarded by mu; by the names of groups
	had      map[string]instance    // guarded by mu; by the IDs of groups
	made     map[string]string      // guarded by mu; the IDs of groups that a create gave, by their names
	removed  map[string]time.Time   // guarded by mu; when ECI accepted the delete of a group, by its ID
}

func newGroups(c *client, owner identity.Owner, hasInits func(identity.Pod) bool) *groups {
	return &groups{
		client: c, owner: owner, hasInits: hasInits,
		expected: map[string]expectation{}, had: map[string]instance{}, made: map[string]string{}, removed: map[string]time.Time{},
	}
}

// expect makes the group of a pod known by its name: no request need ask whose it is.
func (g *groups) expect(pod identity.Pod) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expected[g.owner.Name(pod)] = expectation{pod, g.client.now()}
}

// find is the group of a pod by its name; "" if ECI shows none.
func (g *groups) find(ctx context.Context, pod identity.Pod) (id string, err error) {
	var answer groupsAnswer
	request := listRequest{ContainerGroupName: g.owner.Name(pod), Limit: pageOfGroups}
	if err := g.client.call(ctx, "DescribeContainerGroups", request, &answer); err != nil {
		return "", err
	}
	for _, is := range answer.ContainerGroups {
		if is.ContainerGroupName == request.ContainerGroupName {
			if is.ContainerGroupID == "" {
				return "", errNoID("DescribeContainerGroups")
			}
			return is.ContainerGroupID, nil
		}
	}
	return "", nil
}

// list returns all groups of the node, or an error.
func (g *groups) list(ctx context.Context) ([]instance, error) {
	states, err := g.states(ctx, 0)
	if err == nil && len(states) == 0 {
		err = g.confirmEmpty(ctx)
	}
	if err != nil {
		return nil, err
	}
	all, err := g.complete(ctx, states)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.had)
	for _, i := range all {
		g.had[i.status.ContainerGroupID] = i
		delete(g.expected, i.status.Name)
	}
	for name, e := range g.expected {
		if g.client.now().Sub(e.at) > expectedFor {
			delete(g.expected, name)
		}
	}
	for id, at := range g.removed {
		if g.client.now().Sub(at) > expectedFor {
			delete(g.removed, id)
		}
	}
	return all, nil
}

// changed returns the groups of the node that changed at a time or later.
func (g *groups) changed(ctx context.Context, since time.Time) ([]instance, error) {
	back := g.client.now().Sub(since) + sinceSlack
	states, err := g.states(ctx, int64(max(back, time.Second)/time.Second)+1)
	if err != nil {
		return nil, err
	}
	all, err := g.complete(ctx, states)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, i := range all {
		g.had[i.status.ContainerGroupID] = i
	}
	return all, nil
}

// states reads all pages of what has the tags of the node.
func (g *groups) states(ctx context.Context, sinceSecond int64) (all []groupStatus, err error) {
	request := listRequest{
		Tag:         []tag{{identity.TagCluster, g.owner.Cluster}, {identity.TagNode, g.owner.Node}},
		SinceSecond: sinceSecond, Limit: pageOfStates,
	}
	for range maxPages {
		var answer statusAnswer
		if err := g.client.call(ctx, "DescribeContainerGroupStatus", request, &answer); err != nil {
			return nil, err
		}
		all = append(all, answer.Data...)
		switch answer.NextToken {
		case "":
			return all, nil
		case request.NextToken:
			return nil, errors.New("DescribeContainerGroupStatus: ECI gives the same page again")
		}
		request.NextToken = answer.NextToken
	}
	return nil, fmt.Errorf("DescribeContainerGroupStatus: the list has more than %d pages", maxPages)
}

// complete says of each state whose group it is, and of those that start or failed what their init containers do.
func (g *groups) complete(ctx context.Context, states []groupStatus) (all []instance, err error) {
	var ask []string
	names := map[string]int{}
	for _, s := range states {
		names[s.Name]++
	}
	g.mu.Lock()
	for _, s := range states {
		i, ok := g.had[s.ContainerGroupID]
		if !ok {
			e, expected := g.expected[s.Name]
			i.pod, ok = e.pod, expected
		}
		i.status = s
		double := names[s.Name] > 1 && i.created.IsZero() // who was first is the pod
		if !ok || double || g.tellsOfInits(i) {
			ask = append(ask, s.ContainerGroupID)
		}
		all = append(all, i)
	}
	g.mu.Unlock()
	details, err := g.describe(ctx, ask)
	if err != nil {
		return nil, err
	}
	for n := range all {
		i := &all[n]
		d := details[i.status.ContainerGroupID]
		if d == nil && i.pod.UID == "" {
			return nil, fmt.Errorf("DescribeContainerGroups: ECI tells nothing of group %s, which is in its list: look at the right eci:DescribeContainerGroups", i.status.ContainerGroupID)
		}
		if d == nil { // what is known of it stays: one group must not hide all others
			continue
		}
		i.details, i.created = d, parseTime(d.CreationTime)
		if i.pod.UID == "" {
			of := map[string]string{}
			for _, t := range d.Tags {
				of[t.Key] = t.Value
			}
			i.pod, _ = g.owner.Owned(of)
		}
	}
	return slices.DeleteFunc(all, func(i instance) bool { return i.pod.UID == "" }), nil
}

// tellsOfInits reports whether there may be news of the group's init containers.
func (g *groups) tellsOfInits(i instance) bool {
	if !g.hasInits(i.pod) {
		return false
	}
	if i.status.Status == stateTerminating { // it may be in one list and not in the other
		return false
	}
	settled := i.status.Status == stateRunning || i.status.ended()
	return i.details == nil || !settled || i.details.Status != i.status.Status
}

// describe reads groups by their IDs. One that is not there is not in the answer.
func (g *groups) describe(ctx context.Context, ids []string) (map[string]*group, error) {
	found := map[string]*group{}
	for some := range slices.Chunk(ids, pageOfGroups) {
		text, err := json.Marshal(some)
		if err != nil {
			return nil, err
		}
		var answer groupsAnswer
		if err := g.client.call(ctx, "DescribeContainerGroups", listRequest{ContainerGroupIDs: string(text), Limit: pageOfGroups}, &answer); err != nil {
			return nil, err
		}
		for n := range answer.ContainerGroups {
			found[answer.ContainerGroups[n].ContainerGroupID] = &answer.ContainerGroups[n]
		}
	}
	return found, nil
}
