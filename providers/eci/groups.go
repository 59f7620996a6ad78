// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
)

// instance is a group of this node.
type instance struct {
	seen
	pod     identity.Pod
	created time.Time // zero before ECI was asked for the details
}

// expectation is a requested group.
type expectation struct {
	pod identity.Pod
	at  time.Time
}

// groups reads the groups of a node from ECI.
type groups struct {
	client *client
	owner  identity.Owner
	// hasInits reports whether a pod has init containers. States have nothing about them.
	hasInits func(identity.Pod) bool
	// inCluster returns the groups that run according to the cluster. Nil means that it knows none.
	inCluster func() []running

	mu       sync.Mutex             // not held while ECI is asked
	expected map[string]expectation // guarded by mu; by the names of groups
	had      map[string]instance    // guarded by mu; by the IDs of groups
	made     map[string]string      // guarded by mu; the IDs of created groups, by their names
	removed  map[string]time.Time   // guarded by mu; when ECI accepted the delete of a group, by its ID
}

func newGroups(c *client, owner identity.Owner, hasInits func(identity.Pod) bool) *groups {
	return &groups{
		client: c, owner: owner, hasInits: hasInits,
		expected: map[string]expectation{}, had: map[string]instance{}, made: map[string]string{}, removed: map[string]time.Time{},
	}
}

// expect makes the group of a pod known by its name, so that no request must find its pod.
func (g *groups) expect(pod identity.Pod) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expected[g.owner.Name(pod)] = expectation{pod, g.client.now()}
}

// running is a container of a group that should exist.
type running struct{ group, container string }

// deleted records that ECI has accepted the delete of a group.
func (g *groups) deleted(i instance) {
	id, name := i.status.ContainerGroupID, g.owner.Name(i.pod)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.removed[id] = g.client.now()
	if g.made[name] == id {
		delete(g.made, name)
	}
}

// isMade records the group that a create returned.
func (g *groups) isMade(pod identity.Pod, id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.made[g.owner.Name(pod)] = id
}

// before returns the earlier group of a pod, which lists do not show any more, or "" if there was none.
func (g *groups) before(pod *corev1.Pod) string {
	g.mu.Lock()
	id := g.made[g.owner.Name(identity.Of(pod))]
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
