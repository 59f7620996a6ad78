// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/internal/apiwatch"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// podInformer watches the pods of one node.
type podInformer struct{ shared cache.SharedIndexInformer }

func newPodInformer(client kubernetes.Interface, nodeName string, resync time.Duration) podInformer {
	ours := fields.OneTermEqualSelector("spec.nodeName", nodeName).String()
	return podInformer{newInformer(&corev1.Pod{}, resync, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = ours
			return client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = ours
			return client.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, options)
		},
	})}
}

// Informer returns the shared informer.
func (p podInformer) Informer() cache.SharedIndexInformer { return p.shared }

// Lister returns a lister for the cache.
func (p podInformer) Lister() corev1listers.PodLister {
	return corev1listers.NewPodLister(p.shared.GetIndexer())
}

// serviceInformer watches the services of the cluster, as a kubelet does: every pod gets variables for the
// services of its namespace.
type serviceInformer struct{ shared cache.SharedIndexInformer }

func newServiceInformer(client kubernetes.Interface, resync time.Duration) serviceInformer {
	return serviceInformer{newInformer(&corev1.Service{}, resync, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().Services(metav1.NamespaceAll).List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.CoreV1().Services(metav1.NamespaceAll).Watch(ctx, options)
		},
	})}
}

// Informer returns the shared informer.
func (s serviceInformer) Informer() cache.SharedIndexInformer { return s.shared }

// Lister returns a lister for the cache.
func (s serviceInformer) Lister() corev1listers.ServiceLister {
	return corev1listers.NewServiceLister(s.shared.GetIndexer())
}

func newInformer(example runtime.Object, resync time.Duration, lw *cache.ListWatch) cache.SharedIndexInformer {
	informer := cache.NewSharedIndexInformer(apiwatch.NewSource(lw.ListWithContextFunc, lw.WatchFuncWithContext), example, resync, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	// SetTransform fails only for a running informer.
	_ = informer.SetTransform(dropManagedFields)
	_ = informer.SetWatchErrorHandlerWithContext((&watchErrors{}).handle)
	return informer
}

// watchErrors logs refused requests of an informer. It logs a repeated refusal only once, because the informer retries every few seconds.
type watchErrors struct {
	mu   sync.Mutex
	said string // guarded by mu
}

func (w *watchErrors) handle(ctx context.Context, r *cache.Reflector, err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || ctx.Err() != nil {
		return // the reflector will list again
	}
	text := err.Error()
	w.mu.Lock()
	news := text != w.said
	w.said = text
	w.mu.Unlock()
	logger := log.G(ctx).WithField("type", r.TypeDescription()).WithError(err)
	if news {
		logger.Warn("the API server refuses objects that the node needs to read; trying again")
	} else {
		logger.Debug("the API server still refuses objects that the node needs to read")
	}
}
