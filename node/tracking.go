// SPDX-License-Identifier: Apache-2.0

package node

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// startTracking begins the state of the pod, if it is not that of the pod already. What must not be said
// about an older one is known until the backend does not have it any more.
func (c *PodController) startTracking(key string, api *corev1.Pod) {
	older := c.states.begin(key, api)
	if older == "" {
		return
	}
	c.secrets.End(older)
	if c.states.get(key).previous != older {
		c.secrets.Drop(older)
	}
	c.releaseObjects(key, older)
}

// forget lets go of a pod that is gone on both sides.
func (c *PodController) forget(key string) {
	st := c.states.drop(key)
	c.orphans.forget(key)
	c.lost.forget(key)
	c.secrets.Drop(st.previous)
	c.forgetObjects(key, st.sent.UID)
}

// forgetObjects lets go of the ConfigMaps and Secrets that the pod names, of what it was given, and of its place.
func (c *PodController) forgetObjects(key string, uid types.UID) {
	c.secrets.Drop(uid)
	c.releaseObjects(key, uid)
}

func (c *PodController) releaseObjects(key string, uid types.UID) {
	c.admission.Release(uid)
	c.earlier.drop(uid)
	if c.store != nil && uid != "" {
		namespace, name, _ := cache.SplitMetaNamespaceKey(key)
		c.store.Forget(namespace, name, uid)
	}
}
