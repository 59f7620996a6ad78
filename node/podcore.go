// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lease"
	"github.com/virtual-kubelet/virtual-kubelet/internal/podsecrets"
)

// podCore is shared by all parts of a PodController: the pods in the API server, the states of pods, the lanes for work, and the fence that
// every effect passes. It makes no decisions.
type podCore struct {
	podCache
	lanes
	states   podStates
	earlier  earlierPods
	given    givenUIDs
	secrets  *podsecrets.Manager
	recorder record.EventRecorder
	fence    *lease.Fence // nil: there is no lease guard; set before Run
}

// suspectPod makes the sync lane ask the backend for a pod, even if there seems to be no work.
func (c *podCore) suspectPod(key string) {
	c.states.evidence(key, anyPod, func(st *evidence) { st.suspect = true })
	c.syncLane.Add(key)
}

// dropOlderSecrets forgets the secrets of older pods of the name, because the backend no longer has them.
func (c *podCore) dropOlderSecrets(key string, uid types.UID) {
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	c.secrets.DropOthers(namespace, name, uid)
}

// noteEarlier records the pods in the cache as earlier pods.
func (c *podCore) noteEarlier(ctx context.Context) {
	uids := map[types.UID]bool{}
	for _, pod := range c.all(ctx) {
		uids[pod.UID] = true
	}
	c.earlier.set(uids)
}
