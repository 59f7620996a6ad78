// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/utils/ptr"
)

// managedBy is the value of the label managed-by of copied EndpointSlices, so that remote controllers ignore
// them.
const managedBy = "remote.virtual-kubelet.io"

// onlyPlace drops all fields of a pod except its namespace, name and labels.
func onlyPlace(o any) (any, error) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels}}, nil
}

// isSelected reports whether the pod of a home endpoint runs in the remote namespace, where the remote Service
// selects it. own is the remote namespace of this node's pods, for pods that are not in the watch cache yet.
func (g *globals) isSelected(e *discoveryv1.Endpoint, namespace, own string) bool {
	if ptr.Deref(e.NodeName, "") == g.of.config.Home.Node && namespace == own {
		return true
	}
	if e.TargetRef == nil || e.TargetRef.UID == "" {
		return false
	}
	pods, _ := g.pods.GetIndexer().ByIndex(byUID, string(e.TargetRef.UID)) // fails only for an unknown index
	for _, o := range pods {
		if o.(*corev1.Pod).Namespace == namespace {
			return true
		}
	}
	return false
}

// remoteSlice returns the copy of an EndpointSlice for the remote Service, or nil if it would be empty. It leaves
// out pods that run in the remote cluster, because the Service selects them, and the nodes and zones of the home
// cluster.
func (g *globals) remoteSlice(s *discoveryv1.EndpointSlice, service *corev1.Service) *discoveryv1.EndpointSlice {
	endpoints := g.otherEndpoints(s, service.Namespace)
	if len(endpoints) == 0 {
		return nil
	}
	out := &discoveryv1.EndpointSlice{
		ObjectMeta: g.remoteMeta(s, service.Namespace, g.sliceName(s.Namespace, s.Name), map[string]string{
			discoveryv1.LabelManagedBy: managedBy, discoveryv1.LabelServiceName: s.Labels[discoveryv1.LabelServiceName],
		}),
		AddressType: s.AddressType, Ports: s.Ports, Endpoints: endpoints,
	}
	out.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: service.Name, UID: service.UID}}
	return out
}

// sliceName returns the name of the copy, which is the same for all nodes of the home cluster.
func (g *globals) sliceName(namespace, name string) string {
	return shortenName(name, 200) + "-" + shortHash(g.of.config.Home.Cluster, "EndpointSlice", namespace, name)
}

func (g *globals) otherEndpoints(s *discoveryv1.EndpointSlice, namespace string) (endpoints []discoveryv1.Endpoint) {
	own, _ := g.of.namespaces.remoteName(s.Namespace)
	for _, e := range s.DeepCopy().Endpoints {
		if !g.isSelected(&e, namespace, own) {
			endpoints = append(endpoints, discoveryv1.Endpoint{Addresses: e.Addresses, Conditions: e.Conditions, Hostname: e.Hostname})
		}
	}
	return endpoints
}

// isWanted reports whether a remote EndpointSlice is the non-empty copy of an EndpointSlice of a global Service.
// It ignores the remote namespace, because another node may map it differently.
func (g *globals) isWanted(home discoverylisters.EndpointSliceLister, there *discoveryv1.EndpointSlice) bool {
	at, _ := homeOf(there)
	s, err := home.EndpointSlices(at.Namespace).Get(at.Name)
	if err != nil || there.Name != g.sliceName(at.Namespace, at.Name) || there.Labels[discoveryv1.LabelServiceName] != s.Labels[discoveryv1.LabelServiceName] {
		return false
	}
	service, err := g.of.config.Services.Services(at.Namespace).Get(s.Labels[discoveryv1.LabelServiceName])
	return err == nil && g.isGlobal(service) && len(g.otherEndpoints(s, there.Namespace)) > 0
}

// putSlice writes an EndpointSlice if it differs from the existing one.
func (g *globals) putSlice(ctx context.Context, want *discoveryv1.EndpointSlice) {
	api := g.of.client.DiscoveryV1().EndpointSlices(want.Namespace)
	o, there, _ := g.slices.GetStore().GetByKey(want.Namespace + "/" + want.Name) // fails only for an invalid key
	if !there {
		if _, err := api.Create(ctx, want, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) { // otherwise another node has just created it
			g.recordWrite(ctx, want, err)
		}
		return
	}
	have := o.(*discoveryv1.EndpointSlice)
	next := have.DeepCopy()
	next.Labels, next.Annotations, next.OwnerReferences, next.Ports, next.Endpoints = want.Labels, want.Annotations, want.OwnerReferences, want.Ports, want.Endpoints
	if equality.Semantic.DeepEqual(have, next) {
		return
	}
	_, err := api.Update(ctx, next, metav1.UpdateOptions{})
	g.recordWrite(ctx, want, err)
}
