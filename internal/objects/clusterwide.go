// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// listTimeout bounds the wait of a lister, which has no context.
const listTimeout = 30 * time.Second

// syncCheckInterval is the interval of checks for the first list, because the oldest supported client-go has no channel for it.
const syncCheckInterval = 20 * time.Millisecond

// clusterWide is the informer for all objects of a kind in the cluster. It exists only after the first request
// for it.
type clusterWide struct {
	store *Store
	kind  *kind

	once     sync.Once
	informer cache.SharedIndexInformer
}

// get returns the informer, which runs as long as Run.
func (c *clusterWide) get() cache.SharedIndexInformer {
	c.once.Do(func() {
		c.informer = cache.NewSharedIndexInformer(clusterSource{c}, c.kind.example, 0,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		// This fails only for a running informer.
		_ = c.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
			log.G(ctx).WithError(err).Warn("watch of all " + c.kind.resource.Resource + " ended, trying again")
		})
		c.store.mu.Lock()
		defer c.store.mu.Unlock()
		c.store.startLocked(c.informer.RunWithContext)
	})
	return c.informer
}

// syncedIndexer returns the indexer of the informer when it has seen the whole cluster.
func (c *clusterWide) syncedIndexer() (cache.Indexer, error) {
	informer := c.get()
	timeout, look := time.NewTimer(listTimeout), time.NewTicker(syncCheckInterval)
	defer timeout.Stop()
	defer look.Stop()
	for {
		select {
		case <-c.store.stopped: // cached objects are outdated, even if there is a list
			return nil, fmt.Errorf("list %s: %w", c.kind.resource, errStopped)
		default:
		}
		if informer.HasSynced() {
			return informer.GetIndexer(), nil
		}
		select {
		case <-look.C:
		case <-c.store.stopped:
		case <-timeout.C:
			return nil, fmt.Errorf("list %s: the API server did not answer within %s; check that the node may list them in all namespaces", c.kind.resource, listTimeout)
		}
	}
}

// clusterSource lists and watches all objects of a kind.
type clusterSource struct{ *clusterWide }

// IsWatchListSemanticsUnSupported keeps the reflector from streaming its first list, as for singleObject.
func (clusterSource) IsWatchListSemanticsUnSupported() bool { return true }

// ListWithContext lists the objects of all namespaces.
func (c clusterSource) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return c.kind.list(ctx, c.store.client, metav1.NamespaceAll, options)
}

// WatchWithContext watches the objects of all namespaces.
func (c clusterSource) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return c.kind.watch(ctx, c.store.client, metav1.NamespaceAll, options)
}

// List is ListWithContext for callers without a context.
func (c clusterSource) List(options metav1.ListOptions) (runtime.Object, error) {
	return c.ListWithContext(context.Background(), options)
}

// Watch is WatchWithContext for callers without a context.
func (c clusterSource) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return c.WatchWithContext(context.Background(), options)
}
