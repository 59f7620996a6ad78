// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/tools/cache"
)

// errShared refuses changes of the watch that all nodes share.
var errShared = errors.New("the watch belongs to all nodes of the process and cannot be changed by one")

// podInformer adapts a PodView to SharedIndexInformer. It starts, stops and resyncs with Pods, and ignores the arguments of Run. Pods.mark implements
// the methods of newer client-go versions.
type podInformer struct {
	cache.SharedIndexInformer
	view *PodView
}

var _ cache.SharedIndexInformer = podInformer{}

func (i podInformer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.view.add(h), nil
}

func (i podInformer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.view.add(h), nil
}

func (i podInformer) AddEventHandlerWithOptions(h cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.view.add(h), nil
}

func (i podInformer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	return i.view.dropHandler(handle)
}

func (i podInformer) GetStore() cache.Store                  { return i.view.store }
func (i podInformer) GetIndexer() cache.Indexer              { return i.view.store }
func (i podInformer) GetController() cache.Controller        { return nil }
func (i podInformer) Run(stop <-chan struct{})               { <-stop }
func (i podInformer) RunWithContext(ctx context.Context)     { <-ctx.Done() }
func (i podInformer) HasSynced() bool                        { return i.view.all.hasSynced() }
func (i podInformer) LastSyncResourceVersion() string        { return "" }
func (i podInformer) IsStopped() bool                        { return false }
func (i podInformer) AddIndexers(x cache.Indexers) error     { return i.view.store.AddIndexers(x) }
func (i podInformer) SetTransform(cache.TransformFunc) error { return errShared }

func (i podInformer) SetWatchErrorHandler(cache.WatchErrorHandler) error { return errShared }

func (i podInformer) SetWatchErrorHandlerWithContext(cache.WatchErrorHandlerWithContext) error {
	return errShared
}
