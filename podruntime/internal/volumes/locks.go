// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// locks has a lock for each pod in use.
type locks struct {
	mu   sync.Mutex
	held map[types.UID]*lock // guarded by mu
}

type lock struct {
	sync.Mutex
	users int // guarded by mu of locks
}

// lock waits for the lock of the pod. The caller calls unlock after its work.
func (l *locks) lock(uid types.UID) (unlock func()) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[types.UID]*lock{}
	}
	one := l.held[uid]
	if one == nil {
		one = &lock{}
		l.held[uid] = one
	}
	one.users++
	l.mu.Unlock()
	one.Lock()
	return func() {
		one.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(l.held, uid)
		}
	}
}
