// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// capacityWatch is a node provider that remembers the last reported allocatable resources and addresses of the
// node. The pod controller needs them, but only the node controller receives them.
type capacityWatch struct {
	node.NodeProvider
	redact func(error) error                 // removes the secrets of pods from an error; nil before the pod controller exists
	last   atomic.Pointer[corev1.NodeStatus] // allocatable and addresses
	also   func(*corev1.Node)                // also receives each node; may be nil
}

// Ping calls the provider. Its error is redacted because it is shown in the Node object.
func (w *capacityWatch) Ping(ctx context.Context) error {
	err := w.NodeProvider.Ping(ctx)
	if w.redact != nil {
		err = w.redact(err)
	}
	return err
}

// NotifyNodeStatus remembers each node before it passes it to cb.
func (w *capacityWatch) NotifyNodeStatus(ctx context.Context, cb func(*corev1.Node)) {
	w.NodeProvider.NotifyNodeStatus(ctx, func(n *corev1.Node) {
		if n != nil {
			w.observe(n)
		}
		cb(n)
	})
}

func (w *capacityWatch) observe(n *corev1.Node) {
	list := n.Status.Allocatable
	if list == nil {
		list = n.Status.Capacity
	}
	w.last.Store(&corev1.NodeStatus{Allocatable: list.DeepCopy(), Addresses: slices.Clone(n.Status.Addresses)})
	if w.also != nil {
		w.also(n)
	}
}

// allocatable returns the last reported allocatable resources; callers must not change them.
func (w *capacityWatch) allocatable() corev1.ResourceList { return w.last.Load().Allocatable }

// addresses returns the last reported addresses; callers must not change them.
func (w *capacityWatch) addresses() []corev1.NodeAddress { return w.last.Load().Addresses }
