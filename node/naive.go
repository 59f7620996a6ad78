// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// NaiveNodeProvider is a NodeProvider for backends that are always healthy and whose node never changes after it
// is registered.
type NaiveNodeProvider struct{}

var _ NodeProvider = NaiveNodeProvider{}

// Ping succeeds for as long as ctx lives.
func (NaiveNodeProvider) Ping(ctx context.Context) error {
	return ctx.Err()
}

// NotifyNodeStatus does nothing: this node never changes.
func (NaiveNodeProvider) NotifyNodeStatus(context.Context, func(*corev1.Node)) {}

// NaiveNodeProviderV2 is a NodeProvider for backends that are always healthy. The program changes the node with
// UpdateStatus. Make one with NewNaiveNodeProvider.
type NaiveNodeProviderV2 struct {
	known chan struct{} // closed when notify is first set

	mu     sync.Mutex
	notify func(*corev1.Node) // guarded by mu
}

var _ NodeProvider = (*NaiveNodeProviderV2)(nil)

// NewNaiveNodeProvider returns a NaiveNodeProviderV2 that is not yet connected to a node controller.
func NewNaiveNodeProvider() *NaiveNodeProviderV2 {
	return &NaiveNodeProviderV2{known: make(chan struct{})}
}

// Ping succeeds for as long as ctx lives.
func (*NaiveNodeProviderV2) Ping(ctx context.Context) error {
	return ctx.Err()
}

// NotifyNodeStatus stores notify for UpdateStatus. A second call replaces it.
func (p *NaiveNodeProviderV2) NotifyNodeStatus(_ context.Context, notify func(*corev1.Node)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.notify == nil
	p.notify = notify
	if first {
		close(p.known)
	}
}

// UpdateStatus gives the node controller the new status, labels and annotations of the node. It waits until the controller runs. If ctx
// ends before that, it returns the error of ctx.
func (p *NaiveNodeProviderV2) UpdateStatus(ctx context.Context, node *corev1.Node) error {
	if node == nil {
		return errors.New("update node status: node is nil")
	}
	select {
	case <-p.known:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.mu.Lock()
	notify := p.notify
	p.mu.Unlock()
	notify(node)
	return nil
}
