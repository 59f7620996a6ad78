// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// watchPods registers event handlers that report changes of remote pods.
func (c *Cluster) watchPods() error {
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { c.recordSeen(o.(*corev1.Pod)) },
		UpdateFunc: func(before, o any) {
			c.noteRemoval(before.(*corev1.Pod), o.(*corev1.Pod))
			c.recordSeen(o.(*corev1.Pod))
		},
		DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			if pod, ok := o.(*corev1.Pod); ok {
				c.recordGone(pod)
			}
		},
	}
	_, err := c.cache.pods.AddEventHandler(handler)
	if err == nil && c.cache.owners != nil {
		_, err = c.cache.owners.AddEventHandler(handler)
	}
	if err != nil {
		return fmt.Errorf("watch pods of the remote cluster: %w", err)
	}
	return nil
}

// noteRemoval records a deletion that the home cluster did not request.
func (c *Cluster) noteRemoval(before, remote *corev1.Pod) {
	if before.DeletionTimestamp != nil || remote.DeletionTimestamp == nil || c.stopRequested(remote) {
		return
	}
	_, uid := homeOf(remote)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removed[uid] = true
}

func (c *Cluster) recordSeen(remote *corev1.Pod) {
	_, uid := homeOf(remote)
	c.mu.Lock()
	delete(c.made, uid)
	delete(c.perhaps, uid)
	c.mu.Unlock()
	c.runs.recordPod(remote)
	if isOwner(remote) && (!c.cache.pods.HasSynced() || c.cache.findPod(remote.Namespace, remote.Name) != nil) {
		return // the pod has the status
	}
	if isOwner(remote) && remote.DeletionTimestamp != nil && !c.remakesPods() && c.stopRequested(remote) {
		return // the pod has reported its end, and the status of its owner may be stale
	}
	if c.events != nil {
		c.events.repeatEarly(remote)
	}
	c.reportPod(remote)
}

// recordGone handles the deletion of a remote pod. It reports the end only if the home cluster requested the
// deletion: the node detects other missing pods by itself.
func (c *Cluster) recordGone(remote *corev1.Pod) {
	_, uid := homeOf(remote)
	if c.stopRequested(remote) && isTerminal(remote.Status.Phase) && !(isOwner(remote) && c.remakesPods()) {
		c.reportPod(remote)
	}
	owner := c.cache.findOwner(remote.Namespace, remote.Name)
	if isOwner(remote) && c.cache.findPod(remote.Namespace, remote.Name) != nil || !isOwner(remote) && owner != nil { // the pod or the owner object is still there
		if owner != nil && owner.DeletionTimestamp == nil {
			c.copies.checkAll() // sweeps
		}
		c.runs.recordPod(remote)
		if owner != nil && c.remakesPods() {
			c.reportPod(owner)
		}
		return
	}
	c.mu.Lock()
	delete(c.made, uid)
	delete(c.late, uid)
	delete(c.stopping, uid)
	delete(c.removed, uid)
	delete(c.told, uid)
	delete(c.tracked, uid)
	delete(c.needs, uid)
	delete(c.born, uid)
	c.mu.Unlock()
	c.runs.forgetPod(uid)
	c.copies.releaseObjects(remote)
}

func (c *Cluster) reportPod(remote *corev1.Pod) {
	if c.notify == nil {
		return
	}
	pod := c.podAtHome(remote)
	c.mu.Lock()
	silent := remote.DeletionTimestamp == nil && !c.told[pod.UID] && isOnlyWaiting(pod, c.homePod(pod.Namespace, pod.Name))
	c.told[pod.UID] = !silent
	c.mu.Unlock()
	if !silent {
		c.notify(pod)
	}
}

// isOnlyWaiting reports whether a pod has not started, and its home status already shows that, so that a report
// would change nothing. Pods with an active deadline are reported, because the deadline begins with the first
// report.
func isOnlyWaiting(pod, home *corev1.Pod) bool {
	return home != nil && home.UID == pod.UID && home.Spec.ActiveDeadlineSeconds == nil &&
		isBlank(&pod.Status) && len(pod.Status.Conditions) == 0 && isBlank(&home.Status)
}

// isBlank reports whether a status shows only that the pod has not started.
func isBlank(s *corev1.PodStatus) bool {
	return (s.Phase == "" || s.Phase == corev1.PodPending) && s.Reason == "" && s.Message == "" && s.StartTime == nil && s.PodIP == "" &&
		len(s.InitContainerStatuses)+len(s.ContainerStatuses) == 0
}

// stopRequested reports whether the home cluster has requested the deletion of a pod.
func (c *Cluster) stopRequested(remote *corev1.Pod) bool {
	at, uid := homeOf(remote)
	c.mu.Lock()
	stopping := c.stopping[uid]
	c.mu.Unlock()
	home := c.homePod(at.Namespace, at.Name)
	return stopping || home != nil && home.UID == uid && home.DeletionTimestamp != nil
}

// podAtHome returns a remote pod in its home form.
func (c *Cluster) podAtHome(remote *corev1.Pod) *corev1.Pod {
	at, uid := homeOf(remote)
	by := byHome
	if remote.DeletionTimestamp != nil && !c.stopRequested(remote) {
		c.mu.Lock()
		by = byNobodyKnows // requested before this process started
		if c.removed[uid] {
			by = bySomebody
		}
		c.mu.Unlock()
	}
	if c.remakesPods() {
		remote, by = c.runs.viewPod(remote, by)
	} else if hasLostPod(remote) && !c.stopRequested(remote) {
		by = bySomebody // the last status does not show the result of the pod
	}
	return homeView(remote, c.homePod(at.Namespace, at.Name), c.config.Home.Node, by)
}

// findUID returns the remote pod of a home UID, or nil if there is none. Callers must not change it.
func (c *Cluster) findUID(uid types.UID) *corev1.Pod {
	if pods := c.cache.findPods(byUID, string(uid)); len(pods) > 0 {
		return pods[0]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made[uid].pod
}

// everyPod returns all remote pods, including pods that are not in the watch cache yet. Callers must not change
// them.
func (c *Cluster) everyPod() []*corev1.Pod {
	return c.withUnseen(c.cache.allPods, func(*corev1.Pod) bool { return true })
}

// withUnseen adds the selected pods that were created but are not in the watch cache yet. It reads these first,
// so that a pod that enters the cache at this moment is in at least one list.
func (c *Cluster) withUnseen(shown func() []*corev1.Pod, is func(*corev1.Pod) bool) []*corev1.Pod {
	var unseen []*corev1.Pod
	c.mu.Lock()
	for _, m := range c.made {
		if is(m.pod) {
			unseen = append(unseen, m.pod)
		}
	}
	c.mu.Unlock()
	pods := shown()
	if len(unseen) == 0 {
		return pods
	}
	there := map[types.UID]bool{}
	for _, pod := range pods {
		there[pod.UID] = true
	}
	return append(pods, slices.DeleteFunc(unseen, func(pod *corev1.Pod) bool { return there[pod.UID] })...)
}

// namesCopy reports whether a remote pod refers to a copy. Pods that may have been created count, too.
func (c *Cluster) namesCopy(o object) bool {
	c.mu.Lock()
	for _, m := range c.perhaps {
		if slices.Contains(namedObjects(m.pod), o) {
			c.mu.Unlock()
			return true
		}
	}
	c.mu.Unlock()
	return len(c.withUnseen(func() []*corev1.Pod { return c.cache.findPods(byCopy, o.String()) },
		func(pod *corev1.Pod) bool { return slices.Contains(namedObjects(pod), o) })) > 0
}

// remotePod returns a pod of the node by its remote name, or nil if there is none. Callers must not change it.
func (c *Cluster) remotePod(namespace, name string) *corev1.Pod {
	if o, there, _ := c.cache.pods.GetStore().GetByKey(namespace + "/" + name); there { // fails only for an invalid key
		return o.(*corev1.Pod)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.made {
		if m.pod.Namespace == namespace && m.pod.Name == name {
			return m.pod
		}
	}
	return nil
}

// findName returns the newest remote pod of a home name. An older pod with the name may still be stopping.
func (c *Cluster) findName(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	if err := c.awaitReady(ctx); err != nil {
		return nil, fmt.Errorf("look for pod %s/%s: %w", namespace, name, err)
	}
	var found *corev1.Pod
	at := types.NamespacedName{Namespace: namespace, Name: name}
	for _, pod := range c.withUnseen(func() []*corev1.Pod { return c.cache.findPods(byName, at.String()) }, func(pod *corev1.Pod) bool { is, _ := homeOf(pod); return is == at }) {
		if found == nil || pod.CreationTimestamp.After(found.CreationTimestamp.Time) || found.DeletionTimestamp != nil && pod.DeletionTimestamp == nil {
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
	return c.podAtHome(remote), nil
}

// GetPodStatus returns the status of a pod.
func (c *Cluster) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := c.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods returns all pods of the node from the watch cache. It returns an error while the remote cluster does
// not answer.
func (c *Cluster) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	if err := c.awaitReady(ctx); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	if err := c.cache.failures.Check(ctx, c.cache.listKind); err != nil {
		return nil, fmt.Errorf("list pods: %w", err) // the cache may be stale
	}
	var pods []*corev1.Pod
	for _, remote := range c.everyPod() {
		pods = append(pods, c.podAtHome(remote))
	}
	return pods, nil
}

// podOfContainer returns the remote pod of a container.
func (c *Cluster) podOfContainer(ctx context.Context, namespace, name, container string) (*corev1.Pod, error) {
	remote, err := c.findName(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	for _, list := range [][]corev1.Container{remote.Spec.InitContainers, remote.Spec.Containers} {
		if slices.ContainsFunc(list, func(k corev1.Container) bool { return k.Name == container }) {
			return remote, nil
		}
	}
	return nil, errdefs.NotFoundf("pod %s/%s has no container %q", namespace, name, container)
}
