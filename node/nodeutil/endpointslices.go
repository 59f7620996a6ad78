// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
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
		w := &sliceWatch{client: n.clients.watches, resync: n.cfg.InformerResyncPeriod, listed: n.pods.Ready(), user: user}
		p.start("watch of EndpointSlices", w.run)
	}
}

// sliceWatch gives a provider the EndpointSlices of the cluster.
type sliceWatch struct {
	client kubernetes.Interface
	resync time.Duration
	listed <-chan struct{} // closed when the objects of the listers of ProviderConfig were listed
	user   EndpointSlicesUser
}

// run watches EndpointSlices until ctx ends.
func (w *sliceWatch) run(ctx context.Context) error {
	all := w.client.DiscoveryV1().EndpointSlices(metav1.NamespaceAll)
	informer := newInformer(&discoveryv1.EndpointSlice{}, w.resync, &cache.ListWatch{
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
	case <-w.listed:
	case <-ctx.Done():
		return nil
	}
	err := (&providercall.Caller{}).Do(ctx, "UseEndpointSlices", func(context.Context) error {
		w.user.UseEndpointSlices(discoverylisters.NewEndpointSliceLister(informer.GetIndexer()))
		return nil
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
