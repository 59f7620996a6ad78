// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// pod is an accepted pod and its state.
type pod struct {
	record
	status  corev1.PodStatus // the last status from the provider
	since   time.Time        // when the provider accepted the pod
	missing int              // consecutive lists without the pod
	without time.Time        // the time of the first of these lists
	before  bool             // the pod is older than this process, and the provider has not reported it since
	lost    bool             // the provider no longer has the pod, without a deletion
	gone    time.Time        // when the pod stopped
}

// pods holds the pods of the plugin and the provider that runs them.
type pods struct {
	runner   string
	provider nodeutil.Provider
	store    store
	objects  *objects
	ctx      context.Context //nolint:containedctx // the life of the plugin, not of a request
	working  sync.WaitGroup

	mu   sync.Mutex
	all  map[types.UID]*pod          // guarded by mu
	busy map[types.UID]chan struct{} // guarded by mu; closed when the create or the delete of a pod is over
}

// lock waits until no other request creates or deletes the pod.
func (p *pods) lock(ctx context.Context, uid types.UID) (unlock func(), err error) {
	for {
		p.mu.Lock()
		wait := p.busy[uid]
		if wait == nil {
			mine := make(chan struct{})
			p.busy[uid] = mine
			p.mu.Unlock()
			return func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				delete(p.busy, uid)
				close(mine)
			}, nil
		}
		p.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (p *pods) get(uid types.UID) *pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[uid]
}

// owns returns nil if the provider's pod with this name is the pod k, and not a later pod with the same name.
func (p *pods) owns(ctx context.Context, k *pod) error {
	p.mu.Lock()
	gone := !k.gone.IsZero()
	p.mu.Unlock()
	if !gone {
		have, err := p.provider.GetPod(ctx, k.Pod.Namespace, k.Pod.Name)
		if err != nil {
			return err
		}
		gone = have == nil || have.UID != k.Pod.UID
	}
	if gone {
		return errdefs.NotFoundf("the pod %s/%s with the UID %s is gone", k.Pod.Namespace, k.Pod.Name, k.Pod.UID)
	}
	return nil
}

// job returns a readable ID for the job of a pod.
func (p *pods) job(uid types.UID) string {
	short := string(uid)
	return p.runner + "-" + short[:min(8, len(short))]
}
