// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/internal/providercall"
)

// EndpointSlicesUser is an optional ability of a provider that exports services of this cluster with their addresses. It needs permission
// to list and watch EndpointSlices, which nodes do not have by default. Until the node gets the permission, the provider receives nothing.
type EndpointSlicesUser interface {
	// UsesEndpointSlices reports whether the provider uses EndpointSlices. It is called once, before the node
	// runs.
	UsesEndpointSlices() bool
	// UseEndpointSlices gives the provider all EndpointSlices of the cluster. It is called once, after the EndpointSlices and the listers
	// of ProviderConfig have synced. It must return at once.
	UseEndpointSlices(discoverylisters.EndpointSliceLister)
}

// startSlices starts the watch of EndpointSlices, if the provider uses them.
func (n *Node) startSlices(p *parts) {
	if user, ok := n.provider.(EndpointSlicesUser); ok && user.UsesEndpointSlices() {
		p.start("watch of EndpointSlices", func(ctx context.Context) error { return n.watchSlices(ctx, user) })
	}
}

// watchSlices watches EndpointSlices until ctx ends.
func (n *Node) watchSlices(ctx context.Context, user EndpointSlicesUser) error {
	all := n.clients.watches.DiscoveryV1().EndpointSlices(metav1.NamespaceAll)
	informer := newInformer(&discoveryv1.EndpointSlice{}, n.cfg.InformerResyncPeriod, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return all.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return all.Watch(ctx, options)
		},
	})
	ended := make(chan struct{})
	go func() { // ends with ctx
		informer.RunWithContext(ctx)
		close(ended)
	}()
	defer func() { <-ended }()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil
	}
	select {
	case <-n.pods.Ready():
	case <-ctx.Done():
		return nil
	}
	err := (&providercall.Caller{}).Do(ctx, "UseEndpointSlices", func(context.Context) error {
		user.UseEndpointSlices(discoverylisters.NewEndpointSliceLister(informer.GetIndexer()))
		return nil
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
