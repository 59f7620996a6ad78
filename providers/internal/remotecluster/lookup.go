// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// shownWithin is how long the watch may take to show a pod that was made.
const shownWithin = 10 * time.Second

// watchPods tells of what the watch shows.
func (c *Cluster) watchPods() error {
	_, err := c.cache.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { c.seen(o.(*corev1.Pod)) },
		UpdateFunc: func(before, o any) {
			c.noteRemoval(before.(*corev1.Pod), o.(*corev1.Pod))
			c.seen(o.(*corev1.Pod))
		},
		DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			if pod, ok := o.(*corev1.Pod); ok {
				c.gone(pod)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch pods of the remote cluster: %w", err)
	}
	return nil
}

// noteRemoval notes that somebody began to remove a pod whom home did not ask to.
func (c *Cluster) noteRemoval(before, remote *corev1.Pod) {
	if before.DeletionTimestamp != nil || remote.DeletionTimestamp == nil || c.asked(remote) {
		return
	}
	_, uid := homeOf(remote)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removed[uid] = true
}

func (c *Cluster) seen(remote *corev1.Pod) {
	_, uid := homeOf(remote)
	c.mu.Lock()
	delete(c.made, uid)
	c.mu.Unlock()
	c.tell(remote)
}

// gone tells how a pod ended whose stop was asked for. Of another one the node finds out by itself that it is lost.
func (c *Cluster) gone(remote *corev1.Pod) {
	_, uid := homeOf(remote)
	if c.asked(remote) && terminal(remote.Status.Phase) {
		c.tell(remote)
	}
	c.mu.Lock()
	delete(c.made, uid)
	delete(c.stopping, uid)
	delete(c.removed, uid)
	delete(c.tracked, uid)
	c.mu.Unlock()
	c.copies.soon()
}

func (c *Cluster) tell(remote *corev1.Pod) {
	if c.notify != nil {
		c.notify(c.show(remote))
	}
}

// asked reports whether home is known to have asked for the stop of a pod.
func (c *Cluster) asked(remote *corev1.Pod) bool {
	at, uid := homeOf(remote)
	c.mu.Lock()
	stopping := c.stopping[uid]
	c.mu.Unlock()
	home := c.homePod(at.Namespace, at.Name)
	return stopping || home != nil && home.UID == uid && home.DeletionTimestamp != nil
}

// show is a remote pod as the node sees it.
func (c *Cluster) show(remote *corev1.Pod) *corev1.Pod {
	at, uid := homeOf(remote)
	by := byHome
	if remote.DeletionTimestamp != nil && !c.asked(remote) {
		c.mu.Lock()
		by = byNobodyKnows // it began before this process did
		if c.removed[uid] {
			by = bySomebody
		}
		c.mu.Unlock()
	}
	return shown(remote, c.homePod(at.Namespace, at.Name), by)
}

// findUID returns the remote pod of a UID at home, nil if there is none. It is shared.
func (c *Cluster) findUID(uid types.UID) *corev1.Pod {
	if pods := c.cache.find(byUID, string(uid)); len(pods) > 0 {
		return pods[0]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := c.made[uid]; ok {
		if time.Since(m.at) < shownWithin {
			return m.pod
		}
		delete(c.made, uid)
	}
	return nil
}

// everyPod returns all remote pods, and those that the watch has not shown yet. They are shared.
func (c *Cluster) everyPod() []*corev1.Pod {
	all := c.cache.all()
	there := map[types.UID]bool{}
	for _, pod := range all {
		_, uid := homeOf(pod)
		there[uid] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, m := range c.made {
		if !there[uid] && time.Since(m.at) < shownWithin {
			all = append(all, m.pod)
		}
	}
	return all
}

// findName returns the remote pod of a name at home: while an older one of the name stops, the one that was made last.
func (c *Cluster) findName(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	if err := c.ready(ctx); err != nil {
		return nil, fmt.Errorf("look for pod %s/%s: %w", namespace, name, err)
	}
	var found *corev1.Pod
	at := types.NamespacedName{Namespace: namespace, Name: name}
	for _, pod := range c.everyPod() {
		if is, _ := homeOf(pod); is == at && (found == nil || pod.CreationTimestamp.After(found.CreationTimestamp.Time) || found.DeletionTimestamp != nil && pod.DeletionTimestamp == nil) {
			found = pod
		}
	}
	if found == nil {
		return nil, errdefs.NotFoundf("pod %s is not in the remote cluster", at)
	}
	return found, nil
}

// GetPod returns a pod with its status.
func (c *Cluster) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	remote, err := c.findName(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return c.show(remote), nil
}

// GetPodStatus returns the status of a pod.
func (c *Cluster) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := c.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods returns all pods of the node: what the watch has, which is what it had while the remote cluster does not answer.
func (c *Cluster) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	if err := c.ready(ctx); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var pods []*corev1.Pod
	for _, remote := range c.everyPod() {
		pods = append(pods, c.show(remote))
	}
	return pods, nil
}
