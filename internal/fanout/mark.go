// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// newMark returns an informer without objects. It has synced when the channel is closed. The interface grows with client-go and uses types that older
// versions lack, so only a real informer implements all methods.
func newMark(synced <-chan struct{}) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(unstreamed{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			select {
			case <-synced:
				return &corev1.PodList{}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewFake(), nil
		},
	}}, &corev1.Pod{}, 0, cache.Indexers{})
}

// unstreamed keeps a reflector from using WatchList.
type unstreamed struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported keeps client-go from using WatchList.
func (unstreamed) IsWatchListSemanticsUnSupported() bool { return true }
