// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// OwnerKind is a kind of object from which a controller of the remote cluster creates a pod. The pod has the
// namespace, name, labels and annotations of the object, which is its owner. While the pod exists, its status
// counts. The pod is deleted with the object.
type OwnerKind struct {
	Resource schema.GroupVersionResource
	Kind     string
	// Spec is the path of the pod spec in the object: spec, or spec and pod.
	Spec []string
	// Status is the path of the pod status in the object. Empty means none.
	Status []string
	// Remakes is true if the controller recreates a deleted pod. Otherwise the provider deletes the object, and
	// the pod is lost.
	Remakes bool
}

// Each watch event of an OwnerKind contains the complete pod spec as JSON. It is decoded directly into these
// types: decoding it into maps first, like a dynamic client, would cost more than the pods themselves.

// ownerObject is an object with the pod spec in spec.pod. An object with the pod spec in spec is decoded as a
// Pod.
type ownerObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ownerSpec        `json:"spec"`
	Status corev1.PodStatus `json:"status,omitzero"`
}

type ownerSpec struct {
	Pod corev1.PodSpec `json:"pod"`
}

// DeepCopyObject implements runtime.Object.
func (o *ownerObject) DeepCopyObject() runtime.Object {
	out := &ownerObject{TypeMeta: o.TypeMeta, ObjectMeta: *o.ObjectMeta.DeepCopy(), Spec: ownerSpec{*o.Spec.Pod.DeepCopy()}}
	o.Status.DeepCopyInto(&out.Status)
	return out
}

// ownerObjects is a list of ownerObject.
type ownerObjects struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ownerObject `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (o *ownerObjects) DeepCopyObject() runtime.Object {
	out := &ownerObjects{TypeMeta: o.TypeMeta, ListMeta: *o.ListMeta.DeepCopy()}
	for i := range o.Items {
		out.Items = append(out.Items, *o.Items[i].DeepCopyObject().(*ownerObject))
	}
	return out
}

// typedOwners is a typed client of an OwnerKind.
type typedOwners struct {
	client   rest.Interface
	codec    runtime.ParameterCodec
	resource string
	nested   bool // the spec of the pod is in spec.pod
}

// newTypedOwners returns the client of a kind, or nil if the pod spec is at another path.
func newTypedOwners(access *rest.Config, kind OwnerKind) (*typedOwners, error) {
	nested := slices.Equal(kind.Spec, []string{"spec", "pod"})
	if !nested && !slices.Equal(kind.Spec, []string{"spec"}) || !slices.Equal(kind.Status, []string{"status"}) {
		return nil, nil
	}
	scheme, group := runtime.NewScheme(), kind.Resource.GroupVersion()
	var one, list runtime.Object = &corev1.Pod{}, &corev1.PodList{}
	if nested {
		one, list = &ownerObject{}, &ownerObjects{}
	}
	scheme.AddKnownTypeWithName(group.WithKind(kind.Kind), one)
	scheme.AddKnownTypeWithName(group.WithKind(kind.Kind+"List"), list)
	metav1.AddToGroupVersion(scheme, group)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // for error responses
	config := rest.CopyConfig(access)
	config.APIPath, config.GroupVersion = "/apis", &group
	config.ContentConfig.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make the client of %s: %w", kind.Resource.Resource, err)
	}
	return &typedOwners{client, runtime.NewParameterCodec(scheme), kind.Resource.Resource, nested}, nil
}

func (t *typedOwners) listObjects(ctx context.Context, namespace string, o metav1.ListOptions) (runtime.Object, error) {
	var all runtime.Object = &corev1.PodList{}
	if t.nested {
		all = &ownerObjects{}
	}
	return all, t.client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(t.resource).VersionedParams(&o, t.codec).Do(ctx).Into(all)
}

func (t *typedOwners) watchObjects(ctx context.Context, namespace string, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	return t.client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(t.resource).VersionedParams(&o, t.codec).Watch(ctx)
}

// createObject creates the owner object of a pod.
func (t *typedOwners) createObject(ctx context.Context, pod *corev1.Pod) (runtime.Object, error) {
	meta := metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels, Annotations: pod.Annotations}
	var want, made runtime.Object = &corev1.Pod{ObjectMeta: meta, Spec: pod.Spec}, &corev1.Pod{}
	if t.nested {
		want, made = &ownerObject{ObjectMeta: meta, Spec: ownerSpec{pod.Spec}}, &ownerObject{}
	}
	err := t.client.Post().Namespace(pod.Namespace).Resource(t.resource).Body(want).Do(ctx).Into(made)
	return made, err
}

// emptyObject returns an empty object of the kind.
func (t *typedOwners) emptyObject() runtime.Object {
	if t.nested {
		return &ownerObject{}
	}
	return &corev1.Pod{}
}
