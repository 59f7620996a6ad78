// SPDX-License-Identifier: Apache-2.0

package node

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// earlierPods are the pods that existed when this process began to act for the node. Another process may have created them at the backend,
// whatever their status says.
type earlierPods struct {
	mu   sync.Mutex
	uids map[types.UID]bool // guarded by mu
	at   time.Time          // guarded by mu; when this process began to act
}

func (e *earlierPods) set(uids map[types.UID]bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.uids, e.at = uids, time.Now()
}

// has reports whether the pod existed, and returns when this process began to act.
func (e *earlierPods) has(uid types.UID) (was bool, began time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.uids[uid], e.at
}

func (e *earlierPods) drop(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.uids, uid)
}
