// SPDX-License-Identifier: Apache-2.0

package node

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// ownConditions are conditions that the program shows in addition to the conditions of its provider.
type ownConditions struct {
	mail *latest[[]corev1.NodeCondition] // all conditions, sorted by type

	mu    sync.Mutex
	shown map[corev1.NodeConditionType]corev1.NodeCondition // guarded by mu
}

func newOwnConditions() *ownConditions {
	return &ownConditions{mail: newLatest[[]corev1.NodeCondition](), shown: map[corev1.NodeConditionType]corev1.NodeCondition{}}
}

// change calls f with mu held, and publishes the resulting conditions.
func (o *ownConditions) change(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
	all := []corev1.NodeCondition{}
	for _, key := range slices.Sorted(maps.Keys(o.shown)) {
		all = append(all, o.shown[key])
	}
	o.mail.put(all) // with mu held, so that the last change is published last
}
