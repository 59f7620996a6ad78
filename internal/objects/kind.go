// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// object is a *corev1.ConfigMap or a *corev1.Secret.
type object interface {
	metav1.Object
	runtime.Object
}

// key names an object in the cluster.
type key struct {
	kind      *kind
	namespace string
	name      string
}

func (k key) String() string { return k.kind.name + " " + k.namespace + "/" + k.name }

// kind holds the differences between ConfigMaps and Secrets.
type kind struct {
	name      string
	resource  schema.GroupResource
	example   object
	immutable func(object) bool
	get       func(ctx context.Context, c kubernetes.Interface, namespace, name string) (object, error)
	list      func(ctx context.Context, c kubernetes.Interface, namespace string, options metav1.ListOptions) (runtime.Object, error)
	watch     func(ctx context.Context, c kubernetes.Interface, namespace string, options metav1.ListOptions) (watch.Interface, error)
}

var configMaps = &kind{
	name:     "ConfigMap",
	resource: corev1.Resource("configmaps"),
	example:  &corev1.ConfigMap{},
	immutable: func(o object) bool {
		fixed := o.(*corev1.ConfigMap).Immutable
		return fixed != nil && *fixed
	},
	get: func(ctx context.Context, c kubernetes.Interface, namespace, name string) (object, error) {
		return c.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	},
	list: func(ctx context.Context, c kubernetes.Interface, namespace string, options metav1.ListOptions) (runtime.Object, error) {
		return c.CoreV1().ConfigMaps(namespace).List(ctx, options)
	},
	watch: func(ctx context.Context, c kubernetes.Interface, namespace string, options metav1.ListOptions) (watch.Interface, error) {
		return c.CoreV1().ConfigMaps(namespace).Watch(ctx, options)
	},
}

var secrets = &kind{
	name:     "Secret",
	resource: corev1.Resource("secrets"),
	example:  &corev1.Secret{},
	immutable: func(o object) bool {
		fixed := o.(*corev1.Secret).Immutable
		return fixed != nil && *fixed
	},
	get: func(ctx context.Context, c kubernetes.Interface, namespace, name string) (object, error) {
		return c.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	},
	list: func(ctx context.Context, c kubernetes.Interface, namespace string, options metav1.ListOptions) (runtime.Object, error) {
		return c.CoreV1().Secrets(namespace).List(ctx, options)
	},
	watch: func(ctx context.Context, c kubernetes.Interface, namespace string, options metav1.ListOptions) (watch.Interface, error) {
		return c.CoreV1().Secrets(namespace).Watch(ctx, options)
	},
}
