// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1informers "k8s.io/client-go/informers/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// ConfigMaps returns the store as an informer. Its lister gets single ConfigMaps from the store. Its List, and Informer, start a watch of all
// ConfigMaps of the cluster; List then waits up to 30 seconds for the whole list. The value has a method Store() *Store.
func (s *Store) ConfigMaps() corev1informers.ConfigMapInformer { return configMapInformer{s} }

// Secrets is ConfigMaps for Secrets.
func (s *Store) Secrets() corev1informers.SecretInformer { return secretInformer{s} }

type configMapInformer struct{ store *Store }

func (i configMapInformer) Store() *Store { return i.store }

func (i configMapInformer) Informer() cache.SharedIndexInformer {
	return i.store.cluster[configMaps].get()
}

func (i configMapInformer) Lister() corev1listers.ConfigMapLister {
	return configMapLister{store: i.store}
}

// configMapLister lists ConfigMaps of all namespaces.
type configMapLister struct{ store *Store }

func (l configMapLister) List(selector labels.Selector) ([]*corev1.ConfigMap, error) {
	all, err := l.store.cluster[configMaps].syncedIndexer()
	if err != nil {
		return nil, err
	}
	return corev1listers.NewConfigMapLister(all).List(selector)
}

func (l configMapLister) ConfigMaps(namespace string) corev1listers.ConfigMapNamespaceLister {
	return configMapNamespaceLister{store: l.store, namespace: namespace}
}

type configMapNamespaceLister struct {
	store     *Store
	namespace string
}

func (l configMapNamespaceLister) List(selector labels.Selector) ([]*corev1.ConfigMap, error) {
	all, err := l.store.cluster[configMaps].syncedIndexer()
	if err != nil {
		return nil, err
	}
	return corev1listers.NewConfigMapLister(all).ConfigMaps(l.namespace).List(selector)
}

func (l configMapNamespaceLister) Get(name string) (*corev1.ConfigMap, error) {
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	return l.store.ConfigMap(ctx, l.namespace, name)
}

type secretInformer struct{ store *Store }

func (i secretInformer) Store() *Store { return i.store }

func (i secretInformer) Informer() cache.SharedIndexInformer {
	return i.store.cluster[secrets].get()
}

func (i secretInformer) Lister() corev1listers.SecretLister {
	return secretLister{store: i.store}
}

// secretLister lists Secrets of all namespaces.
type secretLister struct{ store *Store }

func (l secretLister) List(selector labels.Selector) ([]*corev1.Secret, error) {
	all, err := l.store.cluster[secrets].syncedIndexer()
	if err != nil {
		return nil, err
	}
	return corev1listers.NewSecretLister(all).List(selector)
}

func (l secretLister) Secrets(namespace string) corev1listers.SecretNamespaceLister {
	return secretNamespaceLister{store: l.store, namespace: namespace}
}

type secretNamespaceLister struct {
	store     *Store
	namespace string
}

func (l secretNamespaceLister) List(selector labels.Selector) ([]*corev1.Secret, error) {
	all, err := l.store.cluster[secrets].syncedIndexer()
	if err != nil {
		return nil, err
	}
	return corev1listers.NewSecretLister(all).Secrets(l.namespace).List(selector)
}

func (l secretNamespaceLister) Get(name string) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	return l.store.Secret(ctx, l.namespace, name)
}
