// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// call is a call that changes the backend.
type call struct {
	at   time.Time
	verb string // create, update or delete
	name string
	uid  types.UID
}

// calls records the calls of the daemons of one world.
type calls struct {
	mu      sync.Mutex
	all     []call        // guarded by mu
	changed chan struct{} // guarded by mu; closed at the next change
}

func (c *calls) add(verb string, pod *corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, call{time.Now(), verb, pod.Name, pod.UID})
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// those returns the calls for which keep returns true.
func (c *calls) those(keep func(call) bool) (out []call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.all {
		if keep(one) {
			out = append(out, one)
		}
	}
	return out
}

// since returns the calls with one of the verbs since the given time.
func (c *calls) since(t time.Time, verbs ...string) []call {
	return c.those(func(one call) bool { return !one.at.Before(t) && contains(verbs, one.verb) })
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

// await calls done after each call to the backend and returns when done returns true.
func (c *calls) await(t *testing.T, what string, done func() bool) {
	t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		c.mu.Lock()
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.mu.Unlock()
		if done() {
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			t.Fatalf("wait until %s: it did not happen", what)
		}
	}
}

// provider is a complete provider with a backend in memory. It records a changing call after the call is done.
type provider struct {
	memory.Notifying
	memory.NoRequests
	calls *calls
}

func (w *world) newProvider(nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
	return provider{Notifying: memory.Notifying{Backend: w.backend}, calls: w.calls}, nil, nil
}

func (p provider) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	defer p.calls.add("create", pod)
	return p.Backend.CreatePod(ctx, pod)
}

func (p provider) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	defer p.calls.add("update", pod)
	return p.Backend.UpdatePod(ctx, pod)
}

func (p provider) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	defer p.calls.add("delete", pod)
	return p.Backend.DeletePod(ctx, pod)
}
