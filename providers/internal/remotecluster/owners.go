// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// owners manages the objects of an OwnerKind. The cache stores each object as a Pod.
type owners struct {
	kind   OwnerKind
	client dynamic.Interface
	typed  *typedOwners // nil for a kind without a Go type
	cache  *remoteCache
}

// isOwner reports whether a remote pod is the Pod form of an owner object.
func isOwner(remote *corev1.Pod) bool { return remote.Kind != "" && remote.Kind != "Pod" }

func (o *owners) resourceClient(namespace string) dynamic.ResourceInterface {
	return o.client.Resource(o.kind.Resource).Namespace(namespace)
}

// convertObject converts an owner object to a Pod for the cache.
func (o *owners) convertObject(object any) (any, error) {
	switch from := object.(type) {
	case *unstructured.Unstructured:
		return o.podOf(from)
	case *ownerObject:
		return o.withKind(&corev1.Pod{ObjectMeta: from.ObjectMeta, Spec: from.Spec.Pod, Status: from.Status}), nil
	case *corev1.Pod:
		if isOwner(from) && from.ManagedFields == nil {
			return from, nil // the pod is already transformed, and shared
		}
		return o.withKind(from), nil
	}
	return object, nil // not a pod or owner
}

// withKind sets the kind of the owner object in its Pod form.
func (o *owners) withKind(pod *corev1.Pod) *corev1.Pod {
	pod.TypeMeta = metav1.TypeMeta{Kind: o.kind.Kind, APIVersion: o.kind.Resource.GroupVersion().String()}
	pod.ManagedFields = nil
	return pod
}

func (o *owners) podOf(u *unstructured.Unstructured) (*corev1.Pod, error) {
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: o.kind.Kind, APIVersion: o.kind.Resource.GroupVersion().String()},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(), Labels: u.GetLabels(),
			Annotations: u.GetAnnotations(), CreationTimestamp: u.GetCreationTimestamp(), DeletionTimestamp: u.GetDeletionTimestamp(),
		},
	}
	for _, part := range []struct {
		at   []string
		into any
	}{{o.kind.Spec, &pod.Spec}, {o.kind.Status, &pod.Status}} {
		if len(part.at) == 0 {
			continue
		}
		fields, found, err := unstructured.NestedFieldNoCopy(u.Object, part.at...) // no copy, because the spec is large
		if err == nil && found {
			is, ok := fields.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("read %s %s/%s: %s is no object", o.kind.Kind, pod.Namespace, pod.Name, strings.Join(part.at, "."))
			}
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(is, part.into)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s %s/%s: %w", o.kind.Kind, pod.Namespace, pod.Name, err)
		}
	}
	return pod, nil
}

// newInformer returns an informer for the owner objects of the node.
func (o *owners) newInformer(namespace, selector string) cache.SharedIndexInformer {
	if o.typed != nil {
		return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				options.LabelSelector = selector
				return o.typed.listObjects(ctx, namespace, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				options.LabelSelector = selector
				return o.typed.watchObjects(ctx, namespace, options)
			},
		}, o.client), o.typed.emptyObject(), 0, cache.Indexers{})
	}
	return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			return o.resourceClient(namespace).List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			return o.resourceClient(namespace).Watch(ctx, options)
		},
	}, o.client), &unstructured.Unstructured{}, 0, cache.Indexers{})
}

func (o *owners) create(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	if o.typed != nil {
		made, err := o.typed.createObject(ctx, pod)
		if err != nil {
			return nil, err
		}
		read, err := o.convertObject(made)
		if err != nil {
			return nil, err
		}
		return read.(*corev1.Pod), nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(o.kind.Resource.GroupVersion().WithKind(o.kind.Kind))
	u.SetNamespace(pod.Namespace)
	u.SetName(pod.Name)
	u.SetLabels(pod.Labels)
	u.SetAnnotations(pod.Annotations)
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod.Spec)
	if err == nil {
		err = unstructured.SetNestedMap(u.Object, spec, o.kind.Spec...)
	}
	if err != nil {
		return nil, fmt.Errorf("write %s %s: %w", o.kind.Kind, podKey(pod), err)
	}
	made, err := o.resourceClient(pod.Namespace).Create(ctx, u, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return o.podOf(made)
}

func (o *owners) get(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	u, err := o.resourceClient(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return o.podOf(u)
}

// remove deletes an owner object and its pod. If the controller recreates pods, it deletes the object first.
// Otherwise it deletes the pod first, with the grace period: the garbage collector, which deletes the pods of
// deleted objects, uses only the grace period of the spec, and skips pods that are already being deleted.
func (o *owners) remove(ctx context.Context, there *corev1.Pod, grace int64) error {
	pod, object := o.cache.findPod(there.Namespace, there.Name), o.cache.findOwner(there.Namespace, there.Name)
	if object == nil && isOwner(there) {
		object = there
	}
	if object == nil && o.kind.Remakes { // the watch may be late, and the controller recreates a pod while its owner exists
		var err error
		if object, err = o.get(ctx, there.Namespace, there.Name); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	first := pod != nil && !o.kind.Remakes && !isTerminal(pod.Status.Phase) // the owner of a terminated pod goes first, so that it does not copy the status
	if first {
		if err := o.cache.remove(ctx, pod, grace); err != nil && (object == nil || !apierrors.IsNotFound(err)) {
			return err
		}
	}
	if object != nil && object.DeletionTimestamp == nil {
		if err := o.deleteObject(ctx, object); err != nil && (pod == nil || !apierrors.IsNotFound(err) && !apierrors.IsConflict(err)) {
			return err
		}
	}
	if pod == nil || first {
		return nil
	}
	err := o.cache.remove(ctx, pod, grace)
	if apierrors.IsNotFound(err) && object != nil || apierrors.IsForbidden(err) {
		return nil // the pod is being deleted, or the garbage collector will delete it
	}
	return err
}

func (o *owners) deleteObject(ctx context.Context, object *corev1.Pod) error {
	options := deleteByUID(object.UID)
	policy := metav1.DeletePropagationForeground
	if o.kind.Remakes { // while the owner object exists, the controller would recreate the pod
		policy = metav1.DeletePropagationBackground
	}
	options.PropagationPolicy = &policy
	return o.resourceClient(object.Namespace).Delete(ctx, object.Name, options)
}

// hasLostPod reports whether the pod of an owner object is missing.
func hasLostPod(remote *corev1.Pod) bool {
	return isOwner(remote) && remote.Status.Phase != "" && remote.DeletionTimestamp == nil
}

// sweepLost deletes the owner objects whose pods are gone and will not be recreated. The node then detects that
// the pod is lost.
func (o *owners) sweepLost(ctx context.Context, keeps func(*corev1.Pod) bool) {
	for _, remote := range o.cache.allPods() {
		if !hasLostPod(remote) || keeps(remote) {
			continue
		}
		bounded, cancel := context.WithTimeout(ctx, requestTimeout)
		_, err := o.cache.get(bounded, remote.Namespace, remote.Name) // the watch may be late
		if apierrors.IsNotFound(err) {
			err = o.deleteObject(bounded, remote)
		}
		cancel()
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
			log.G(ctx).WithError(err).WithField("name", podKey(remote)).Warn("What a pod was made of is still in the remote cluster, without the pod")
			if noAnswer(err) {
				return
			}
		}
	}
}
