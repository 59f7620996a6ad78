// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
)

// mostAsked is how many groups are asked for before an empty list is believed.
const mostAsked = 3

// running is a container of a group that is taken to be there.
type running struct{ group, container string }

// confirmEmpty fails for a list without a group where there must be some. ECI gives such a list, and no error, to those who have lost the right to
// read; so it is asked for something of groups by their IDs, and must say of each that it is not there.
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

// mustBe are some groups that the last list had, or that the cluster says to run, and that nobody has deleted here.
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

// deleted notes that ECI has accepted the delete of a group.
func (g *groups) deleted(i instance) {
	id, name := i.status.ContainerGroupID, g.owner.Name(i.pod)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.removed[id] = g.client.now()
	if g.made[name] == id {
		delete(g.made, name)
	}
}

// isMade notes the group that a create gave.
func (g *groups) isMade(pod identity.Pod, id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.made[g.owner.Name(pod)] = id
}

// before is the group that a pod had, of which lists tell nothing any more; "" if it had none.
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

// again is the token of a create after a group was lost: ECI may answer the first one with the group that is no more.
func again(name, lost string) string { return "vk-" + identity.Hash(name, lost) }

// groupOf is the group of a run, by the ID that it has in the status of a pod.
func groupOf(run string) string {
	rest, ours := strings.CutPrefix(run, "eci://")
	if !ours {
		return ""
	}
	group, _, _ := strings.Cut(rest, "/")
	return group
}

// running are the groups that run as the cluster has it.
func (d *driver) running() (all []running) {
	pods, err := d.pods.List(labels.Everything())
	if err != nil {
		return nil
	}
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, s := range pod.Status.ContainerStatuses {
			if group := groupOf(s.ContainerID); group != "" && s.State.Running != nil {
				all = append(all, running{group, s.Name})
				break
			}
		}
	}
	return all
}
