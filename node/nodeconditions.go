// SPDX-License-Identifier: Apache-2.0

package node

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
)

// ownConditions are conditions that the program shows beside what its provider reports.
type ownConditions struct {
	mail *latest[[]corev1.NodeCondition] // all of them, sorted by type

	mu    sync.Mutex
	shown map[corev1.NodeConditionType]corev1.NodeCondition // guarded by mu
}

func newOwnConditions() *ownConditions {
	return &ownConditions{mail: newLatest[[]corev1.NodeCondition](), shown: map[corev1.NodeConditionType]corev1.NodeCondition{}}
}

// change calls f with mu held and hands on what is to be shown then.
func (o *ownConditions) change(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
	all := []corev1.NodeCondition{}
	for _, key := range slices.Sorted(maps.Keys(o.shown)) {
		all = append(all, o.shown[key])
	}
	o.mail.put(all) // with mu held, so that the last change is the last one put
}

// SetCondition shows c in the status of the node, in the place of what the provider reports of
// that type, until ClearCondition. It does not wait for the API server, and may be called at
// any time, from any goroutine. Times in c may be left empty. The message is redacted and cut to 1 KiB.
func (n *NodeController) SetCondition(c corev1.NodeCondition) {
	c.Message = redact.Text(c.Message)
	n.conditions.change(func() { n.conditions.shown[c.Type] = c })
}

// ClearCondition undoes SetCondition: the node shows what the provider reports of that type,
// if anything.
func (n *NodeController) ClearCondition(t corev1.NodeConditionType) {
	n.conditions.change(func() { delete(n.conditions.shown, t) })
}

// takeConditions notes what is to be shown.
func (r *nodeReconciler) takeConditions() {
	if shown, ok := r.c.conditions.mail.take(); ok {
		r.shown, r.urgent = shown, true
	}
}

// show puts c among conditions, in the place of the one of its type.
func show(conditions []corev1.NodeCondition, c corev1.NodeCondition) []corev1.NodeCondition {
	for i := range conditions {
		if conditions[i].Type == c.Type {
			conditions[i] = c
			return conditions
		}
	}
	return append(conditions, c)
}
