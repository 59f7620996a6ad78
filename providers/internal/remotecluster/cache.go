// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Indexes of the remote pods.
const (
	byUID  = "uid"  // at home
	byName = "name" // at home, with the namespace
)

// remoteCache is what the remote cluster has of this node: one watch for all pods, one for the copies of each kind. A list that fails
// leaves it as it was.
type remoteCache struct {
	factory                   informers.SharedInformerFactory
	pods, configMaps, secrets cache.SharedIndexInformer

	mu   sync.Mutex
	errs map[string]error // guarded by mu; by kind, why the last list or watch failed
}

func newCache(client kubernetes.Interface, home Home, namespace string) *remoteCache {
	f := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = home.Selector() }))
	c := &remoteCache{
		factory: f, pods: f.Core().V1().Pods().Informer(), configMaps: f.Core().V1().ConfigMaps().Informer(),
		secrets: f.Core().V1().Secrets().Informer(), errs: map[string]error{},
	}
	for kind, informer := range map[string]cache.SharedIndexInformer{"pods": c.pods, "configmaps": c.configMaps, "secrets": c.secrets} {
		_ = informer.SetTransform(withoutManagedFields)
		_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { c.failed(kind, err) })
	}
	_ = c.pods.AddIndexers(cache.Indexers{ // none of these fails before the informer runs
		byUID: func(o any) ([]string, error) {
			_, uid := homeOf(o.(*corev1.Pod))
			return []string{string(uid)}, nil
		},
		byName: func(o any) ([]string, error) {
			at, _ := homeOf(o.(*corev1.Pod))
			return []string{at.String()}, nil
		},
	})
	return c
}

// withoutManagedFields saves the memory of what nobody here reads.
func withoutManagedFields(o any) (any, error) {
	if m, ok := o.(metav1.Object); ok {
		m.SetManagedFields(nil)
	}
	return o, nil
}

func (c *remoteCache) run(ctx context.Context) {
	c.factory.StartWithContext(ctx)
	<-ctx.Done()
	c.factory.Shutdown()
}

func (c *remoteCache) synced() bool {
	return c.pods.HasSynced() && c.configMaps.HasSynced() && c.secrets.HasSynced()
}

func (c *remoteCache) failed(kind string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errs[kind] = err
}

// trouble is why what is here was not listed yet; nil if it was.
func (c *remoteCache) trouble() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for kind, informer := range map[string]cache.SharedIndexInformer{"pods": c.pods, "configmaps": c.configMaps, "secrets": c.secrets} {
		if !informer.HasSynced() {
			errs = append(errs, c.errs[kind])
		}
	}
	return errors.Join(errs...)
}

// find returns the remote pods of an index. They are shared.
func (c *remoteCache) find(index, key string) (pods []*corev1.Pod) {
	objects, _ := c.pods.GetIndexer().ByIndex(index, key) // fails for an index that does not exist
	for _, o := range objects {
		pods = append(pods, o.(*corev1.Pod))
	}
	return pods
}

// all returns all remote pods. They are shared.
func (c *remoteCache) all() (pods []*corev1.Pod) {
	for _, o := range c.pods.GetStore().List() {
		pods = append(pods, o.(*corev1.Pod))
	}
	return pods
}

// secret returns a Secret of the node, nil if there is none. It is shared.
func (c *remoteCache) secret(namespace, name string) *corev1.Secret {
	o, found, err := c.secrets.GetStore().GetByKey(types.NamespacedName{Namespace: namespace, Name: name}.String())
	if err != nil || !found {
		return nil
	}
	return o.(*corev1.Secret)
}

// configMap is as secret.
func (c *remoteCache) configMap(namespace, name string) *corev1.ConfigMap {
	o, found, err := c.configMaps.GetStore().GetByKey(types.NamespacedName{Namespace: namespace, Name: name}.String())
	if err != nil || !found {
		return nil
	}
	return o.(*corev1.ConfigMap)
}
