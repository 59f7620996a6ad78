// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// Indexes of the remote pods.
const (
	byUID   = "uid"   // the UID in the home cluster
	byName  = "name"  // namespace and name in the home cluster
	byCopy  = "copy"  // by the copies that the pod refers to
	byMaker = "maker" // by the UID of the home cluster, if the pod has one
)

// remoteCache caches the objects of this node in the remote cluster, with one watch for all pods, and one for
// each kind of copies. A failed list does not change it.
type remoteCache struct {
	client                    kubernetes.Interface
	factory                   informers.SharedInformerFactory
	pods, configMaps, secrets cache.SharedIndexInformer
	owners                    cache.SharedIndexInformer // nil: pods are made themselves

	namespace, selector string
	of                  *owners // nil: pods are made themselves
	failures            Failures
}

func newCache(client kubernetes.Interface, home Home, namespace string, of *owners) *remoteCache {
	f := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = home.Selector() }))
	c := &remoteCache{
		client: client, factory: f, pods: f.Core().V1().Pods().Informer(), configMaps: f.Core().V1().ConfigMaps().Informer(),
		secrets: f.Core().V1().Secrets().Informer(), namespace: namespace, selector: home.Selector(), of: of,
	}
	if of != nil {
		of.cache, c.owners = c, of.newInformer(namespace, home.Selector())
	}
	for kind, informer := range c.allInformers() {
		_ = informer.SetTransform(withoutManagedFields)
		_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { c.failures.Note(kind, err) })
	}
	indexers := cache.Indexers{ // AddIndexers cannot fail before the informer runs
		byUID: indexUID,
		byName: func(o any) ([]string, error) {
			at, _ := homeOf(o.(*corev1.Pod))
			return []string{at.String()}, nil
		},
		byCopy: func(o any) (keys []string, _ error) {
			for _, copied := range namedObjects(o.(*corev1.Pod)) {
				keys = append(keys, copied.String())
			}
			return keys, nil
		},
		byMaker: func(o any) ([]string, error) { return []string{o.(*corev1.Pod).Annotations[annotationHome]}, nil },
	}
	_ = c.pods.AddIndexers(indexers)
	if of != nil {
		_ = c.owners.AddIndexers(indexers)
		_ = c.owners.SetTransform(of.convertObject)
	}
	return c
}

func indexUID(o any) ([]string, error) {
	_, uid := homeOf(o.(*corev1.Pod))
	return []string{string(uid)}, nil
}

// allInformers returns the informers of the cache, by the kind of their objects.
func (c *remoteCache) allInformers() map[string]cache.SharedIndexInformer {
	all := map[string]cache.SharedIndexInformer{"pods": c.pods, "configmaps": c.configMaps, "secrets": c.secrets}
	if c.owners != nil {
		all["owners"] = c.owners
	}
	return all
}

// withoutManagedFields saves memory by dropping a field that this process never reads.
func withoutManagedFields(o any) (any, error) {
	if m, ok := o.(metav1.Object); ok {
		m.SetManagedFields(nil)
	}
	return o, nil
}

func (c *remoteCache) run(ctx context.Context) {
	c.factory.StartWithContext(ctx)
	if c.owners != nil {
		c.owners.RunWithContext(ctx)
	}
	<-ctx.Done()
	c.factory.Shutdown()
}

func (c *remoteCache) hasSynced() bool {
	return c.pods.HasSynced() && c.configMaps.HasSynced() && c.secrets.HasSynced() && (c.owners == nil || c.owners.HasSynced())
}

// unlistedError returns the reason why the first list is missing, or nil if it was successful.
func (c *remoteCache) unlistedError() error {
	var errs []error
	for kind, informer := range c.allInformers() {
		if !informer.HasSynced() {
			errs = append(errs, c.failures.Of(kind))
		}
	}
	return errors.Join(errs...)
}

// listRefusal returns the error if the remote API server forbids a list that is still missing, or else nil.
func (c *remoteCache) listRefusal() error {
	for kind, informer := range c.allInformers() {
		if err := c.failures.Of(kind); !informer.HasSynced() && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)) {
			return err
		}
	}
	return nil
}

// listKind lists the objects of an informer.
func (c *remoteCache) listKind(ctx context.Context, kind string, one metav1.ListOptions) (err error) {
	one.LabelSelector = c.selector
	switch core := c.client.CoreV1(); kind {
	case "pods":
		_, err = core.Pods(c.namespace).List(ctx, one)
	case "configmaps":
		_, err = core.ConfigMaps(c.namespace).List(ctx, one)
	case "secrets":
		_, err = core.Secrets(c.namespace).List(ctx, one)
	default:
		_, err = c.of.resourceClient(c.namespace).List(ctx, one)
	}
	return err
}

// findPods returns the remote pods with an index key, and owner objects without a pod. Callers must not change
// them.
func (c *remoteCache) findPods(index, key string) []*corev1.Pod {
	return c.mergePods(func(from cache.SharedIndexInformer) []any {
		objects, _ := from.GetIndexer().ByIndex(index, key) // fails only for an unknown index
		return objects
	})
}

// podMakers returns the UIDs of the home clusters that created remote pods, with "" for pods without the
// annotation.
func (c *remoteCache) podMakers() []string {
	makers := c.pods.GetIndexer().ListIndexFuncValues(byMaker)
	if c.owners != nil {
		makers = append(makers, c.owners.GetIndexer().ListIndexFuncValues(byMaker)...)
	}
	return makers
}

// allPods returns all remote pods, and the owner objects without a pod. Callers must not change them.
func (c *remoteCache) allPods() []*corev1.Pod {
	return c.mergePods(func(from cache.SharedIndexInformer) []any { return from.GetStore().List() })
}

func (c *remoteCache) mergePods(list func(cache.SharedIndexInformer) []any) (pods []*corev1.Pod) {
	var without []any // listed first, so that a pod that is created at this moment is in at least one list
	if c.owners != nil {
		without = list(c.owners)
	}
	listed := map[string]bool{} // do not ask the cache again: a pod that was added since would be in neither list
	for _, o := range list(c.pods) {
		pod := o.(*corev1.Pod)
		pods, listed[podKey(pod)] = append(pods, pod), true
	}
	for _, o := range without {
		if owner := o.(*corev1.Pod); !listed[podKey(owner)] {
			pods = append(pods, owner)
		}
	}
	return pods
}

// findPod returns a remote pod, or nil if there is none. Callers must not change it.
func (c *remoteCache) findPod(namespace, name string) *corev1.Pod {
	return podIn(c.pods, namespace, name)
}

// findOwner returns the owner object of a remote pod, or nil. Callers must not change it.
func (c *remoteCache) findOwner(namespace, name string) *corev1.Pod {
	if c.owners == nil {
		return nil
	}
	return podIn(c.owners, namespace, name)
}

func podIn(informer cache.SharedIndexInformer, namespace, name string) *corev1.Pod {
	o, found, err := informer.GetStore().GetByKey(types.NamespacedName{Namespace: namespace, Name: name}.String())
	if err != nil || !found {
		return nil
	}
	return o.(*corev1.Pod)
}

func (c *remoteCache) create(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	return c.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
}

func (c *remoteCache) get(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return c.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (c *remoteCache) remove(ctx context.Context, there *corev1.Pod, grace int64) error {
	if there.DeletionTimestamp != nil && ptr.Deref(there.DeletionGracePeriodSeconds, 0) <= grace {
		return nil
	}
	options := deleteByUID(there.UID)
	options.GracePeriodSeconds = &grace
	return c.client.CoreV1().Pods(there.Namespace).Delete(ctx, there.Name, options)
}

// anyIn reports whether there are pods in a remote namespace.
func (c *remoteCache) anyIn(namespace string) bool {
	pods, _ := c.pods.GetIndexer().IndexKeys(cache.NamespaceIndex, namespace) // fails only for an unknown index
	return len(pods) > 0
}

// findSecret returns a Secret of the node, or nil if there is none. Callers must not change it.
func (c *remoteCache) findSecret(namespace, name string) *corev1.Secret {
	o, found, err := c.secrets.GetStore().GetByKey(types.NamespacedName{Namespace: namespace, Name: name}.String())
	if err != nil || !found {
		return nil
	}
	return o.(*corev1.Secret)
}

// configMap returns a ConfigMap of the node, or nil if there is none. Callers must not change it.
func (c *remoteCache) configMap(namespace, name string) *corev1.ConfigMap {
	o, found, err := c.configMaps.GetStore().GetByKey(types.NamespacedName{Namespace: namespace, Name: name}.String())
	if err != nil || !found {
		return nil
	}
	return o.(*corev1.ConfigMap)
}

// findCopy returns a ConfigMap or Secret of the node, or nil if there is none. Callers must not change it.
func (c *remoteCache) findCopy(o object) metav1.Object {
	if o.kind == KindSecret {
		if s := c.findSecret(o.namespace, o.name); s != nil {
			return s
		}
	} else if m := c.configMap(o.namespace, o.name); m != nil {
		return m
	}
	return nil
}
