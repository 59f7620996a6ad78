// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// instance is a group of this node.
type instance struct {
	seen
	pod     identity.Pod
	created time.Time // zero until the details of the group are read
}

// request is a requested group.
type request struct {
	pod identity.Pod
	at  time.Time
	id  string // of the group; "" before an answer
}

// groups reads the groups of a node from ECI.
type groups struct {
	client *client
	owner  identity.Owner
	// hasInits reports whether a pod has init containers. The states of groups do not have them.
	hasInits func(identity.Pod) bool
	// inCluster returns the groups that run according to the cluster. Nil means that it knows none.
	inCluster func() []running

	mu        sync.Mutex           // not held during requests to ECI
	requested map[string]request   // guarded by mu; keyed by the names of groups
	had       map[string]instance  // guarded by mu; keyed by the IDs of groups
	removed   map[string]time.Time // guarded by mu; when ECI accepted the delete of a group, by its ID
}

func newGroups(c *client, owner identity.Owner, hasInits func(identity.Pod) bool) *groups {
	return &groups{
		client: c, owner: owner, hasInits: hasInits,
		requested: map[string]request{}, had: map[string]instance{}, removed: map[string]time.Time{},
	}
}

// expect records the pod of a group by the name of the group, so that no request is needed to find the pod.
func (g *groups) expect(pod identity.Pod) {
	g.mu.Lock()
	defer g.mu.Unlock()
	name := g.owner.Name(pod)
	g.requested[name] = request{pod, g.client.now(), g.requested[name].id}
}

// running is a container of a group that should exist.
type running struct{ group, container string }

// deleted records that ECI has accepted the delete of a group.
func (g *groups) deleted(i instance) {
	id, name := i.status.ContainerGroupID, g.owner.Name(i.pod)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.removed[id] = g.client.now()
	if g.requested[name].id == id {
		delete(g.requested, name)
	}
}

// isMade records the group that a create returned.
func (g *groups) isMade(pod identity.Pod, id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requested[g.owner.Name(pod)] = request{pod, g.client.now(), id}
}

// before returns the earlier group of a pod, which lists no longer show, or "" if there was none.
func (g *groups) before(pod *corev1.Pod) string {
	g.mu.Lock()
	id := g.requested[g.owner.Name(identity.Of(pod))].id
	g.mu.Unlock()
	for i := range pod.Status.ContainerStatuses {
		if id == "" {
			id = groupOf(pod.Status.ContainerStatuses[i].ContainerID)
		}
	}
	return id
}

// again returns the token of a create after a group was lost: ECI may answer the first token with the lost
// group.
func again(name, lost string) string { return "vk-" + identity.Hash(name, lost) }

// groupOf returns the group of a run, from the container ID in the status of a pod.
func groupOf(run string) string {
	rest, ours := strings.CutPrefix(run, "eci://")
	if !ours {
		return ""
	}
	group, _, _ := strings.Cut(rest, "/")
	return group
}

const (
	// pageOfStates and pageOfGroups are the maximum numbers of groups in an answer.
	pageOfStates, pageOfGroups = 200, 20
	// maxPages bounds a list: an account has fewer groups.
	maxPages = 500
	// sinceSlack is added to the time of a request for changes, because clocks differ and answers are late.
	sinceSlack = 10 * time.Second
	// expectedFor is how long lists may lack a group after a create without an answer, and how long they may show a removed group.
	expectedFor = 10 * time.Minute
)

// find returns the group of a pod by its name, or "" if ECI shows none.
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
func (g *groups) list(ctx context.Context) ([]instance, error) { return g.read(ctx, 0) }

// changed returns the groups of the node with changes at a time or later.
func (g *groups) changed(ctx context.Context, since time.Time) ([]instance, error) {
	back := g.client.now().Sub(since) + sinceSlack
	return g.read(ctx, int64(max(back, time.Second)/time.Second)+1)
}

// read returns the groups of the node with changes in the last seconds, or all groups for 0.
func (g *groups) read(ctx context.Context, seconds int64) ([]instance, error) {
	states, err := g.states(ctx, seconds)
	if err == nil && seconds == 0 && len(states) == 0 {
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
	if seconds == 0 {
		clear(g.had)
		old := func(at time.Time) bool { return g.client.now().Sub(at) > expectedFor }
		maps.DeleteFunc(g.requested, func(_ string, r request) bool { return r.id == "" && old(r.at) })
		maps.DeleteFunc(g.removed, func(_ string, at time.Time) bool { return old(at) })
	}
	for _, i := range all {
		g.had[i.status.ContainerGroupID] = i
	}
	return all, nil
}

// states reads all pages of the groups with the tags of the node.
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

// complete adds to each state the pod of its group. For groups that start or failed, it also adds the states of
// init containers.
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
			var r request
			r, ok = g.requested[s.Name]
			i.pod = r.pod
		}
		i.status = s
		double := names[s.Name] > 1 && i.created.IsZero() // the creation times decide which of the groups belongs to the pod
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
		if d == nil { // the last known state stays: one group must not hide all others
			continue
		}
		i.details, i.created = d, podstatus.ParseTime(d.CreationTime)
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

// tellsOfInits reports whether the states of the group's init containers may have changed.
func (g *groups) tellsOfInits(i instance) bool {
	if !g.hasInits(i.pod) {
		return false
	}
	if i.status.Status == stateTerminating { // a terminating group may be missing in one of the lists
		return false
	}
	settled := i.status.Status == stateRunning || i.status.ended()
	return i.details == nil || !settled || i.details.Status != i.status.Status
}

// describe reads groups by their IDs. A missing group is not in the answer.
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

// mostAsked is the number of groups that confirmEmpty requests.
const mostAsked = 3

// confirmEmpty returns an error for an empty list if a group must exist. ECI returns an empty list, and no error, to an account that
// has lost the right to read. So confirmEmpty requests some groups by their IDs, and ECI must report each of them as missing.
func (g *groups) confirmEmpty(ctx context.Context) error {
	for _, r := range g.mustBe() {
		err := g.client.call(ctx, "DescribeContainerLog", logRequest{ContainerGroupID: r.group, ContainerName: r.container, Tail: 1}, nil)
		if errdefs.IsNotFound(err) {
			continue
		}
		return errors.Join(fmt.Errorf("DescribeContainerGroupStatus: the list is empty, and group %s is there: look at the right eci:DescribeContainerGroupStatus", r.group), err)
	}
	return nil
}

// mustBe returns some groups that the last list had, or that run according to the cluster, and that were not
// deleted here.
func (g *groups) mustBe() (some []running) {
	all := map[string]string{} // containers, by groups
	if g.inCluster != nil {
		for _, r := range g.inCluster() {
			all[r.group] = r.container
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, i := range g.had {
		if !i.status.ended() && i.status.Status != stateTerminating && len(i.status.PodStatus.ContainerStatuses) > 0 {
			all[id] = i.status.PodStatus.ContainerStatuses[0].Name
		}
	}
	for id, container := range all {
		if _, gone := g.removed[id]; !gone && len(some) < mostAsked {
			some = append(some, running{id, container})
		}
	}
	return some
}
