// SPDX-License-Identifier: Apache-2.0

package node

import "github.com/virtual-kubelet/virtual-kubelet/internal/keyqueue"

func waitingKeys(q *keyqueue.Queue, class int) int { n, _ := q.Len(class); return n }
func workedKeys(q *keyqueue.Queue, class int) int  { _, n := q.Len(class); return n }
func allKeys(q *keyqueue.Queue, class int) int     { n, m := q.Len(class); return n + m }

// SyncPodsFromKubernetesQueueLen returns how many pods wait for, or are in, work
// towards the provider.
func (c *PodController) SyncPodsFromKubernetesQueueLen() int { return allKeys(c.syncLane, 0) }

// SyncPodsFromKubernetesQueueUnprocessedLen returns how many pods wait for work
// towards the provider.
func (c *PodController) SyncPodsFromKubernetesQueueUnprocessedLen() int {
	return waitingKeys(c.syncLane, 0)
}

// SyncPodsFromKubernetesQueueItemsBeingProcessedLen returns how many pods are in
// work towards the provider.
func (c *PodController) SyncPodsFromKubernetesQueueItemsBeingProcessedLen() int {
	return workedKeys(c.syncLane, 0)
}

// DeletePodsFromKubernetesQueueLen returns how many pods wait for, or are in,
// removal from the API server.
func (c *PodController) DeletePodsFromKubernetesQueueLen() int {
	return allKeys(c.statusLane, classRemoval)
}

// DeletePodsFromKubernetesQueueUnprocessedLen returns how many pods wait for
// removal from the API server.
func (c *PodController) DeletePodsFromKubernetesQueueUnprocessedLen() int {
	return waitingKeys(c.statusLane, classRemoval)
}

// DeletePodsFromKubernetesQueueItemsBeingProcessedLen returns how many pods are
// being removed from the API server.
func (c *PodController) DeletePodsFromKubernetesQueueItemsBeingProcessedLen() int {
	return workedKeys(c.statusLane, classRemoval)
}

// SyncPodStatusFromProviderQueueLen returns how many pods wait for, or are in, a
// status write.
func (c *PodController) SyncPodStatusFromProviderQueueLen() int {
	return allKeys(c.statusLane, classStatus)
}

// SyncPodStatusFromProviderQueueUnprocessedLen returns how many pods wait for a
// status write.
func (c *PodController) SyncPodStatusFromProviderQueueUnprocessedLen() int {
	return waitingKeys(c.statusLane, classStatus)
}

// SyncPodStatusFromProviderQueueItemsBeingProcessedLen returns how many pods are
// in a status write.
func (c *PodController) SyncPodStatusFromProviderQueueItemsBeingProcessedLen() int {
	return workedKeys(c.statusLane, classStatus)
}
