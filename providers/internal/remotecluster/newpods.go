// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// lookForMade requests the pods that were created, or may have been created, and that are not in the watch cache
// in time. It keeps pods that exist, because the watch may be late, and forgets pods that do not.
func (c *Cluster) lookForMade(ctx context.Context) {
	c.mu.Lock()
	made, all := maps.Clone(c.made), maps.Clone(c.perhaps)
	c.mu.Unlock()
	maps.Copy(all, made)
	for _, m := range all {
		if time.Since(m.at) < shownWithin {
			continue
		}
		bounded, cancel := context.WithTimeout(ctx, requestTimeout)
		pod, err := c.writer.get(bounded, m.pod.Namespace, m.pod.Name)
		cancel()
		switch {
		case err == nil && (m.pod.UID == "" || pod.UID == m.pod.UID):
			c.recordFound(pod, m)
		case err == nil, apierrors.IsNotFound(err):
			c.notMade(m.pod)
		case ctx.Err() == nil:
			log.G(ctx).WithError(err).WithField("name", podKey(m.pod)).Warn("Nobody knows whether a pod that was made is still in the remote cluster")
			if noAnswer(err) {
				return
			}
		}
	}
}

// recordFound records an existing pod that is not in the watch cache.
func (c *Cluster) recordFound(pod *corev1.Pod, was madePod) {
	_, uid := homeOf(pod)
	c.mu.Lock()
	defer c.mu.Unlock()
	_, made := c.made[uid]
	_, perhaps := c.perhaps[uid]
	if made || perhaps { // the pod is still not in the watch cache
		delete(c.perhaps, uid)
		c.made[uid] = madePod{pod, was.at}
	}
}

// notMade forgets a pod that does not exist.
func (c *Cluster) notMade(pod *corev1.Pod) {
	_, uid := homeOf(pod)
	c.mu.Lock()
	_, made := c.made[uid]
	delete(c.made, uid)
	delete(c.perhaps, uid)
	delete(c.born, uid)
	c.mu.Unlock()
	if made {
		c.recordGone(pod)
	}
}
