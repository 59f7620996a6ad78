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

// managedBy names the manager of home's EndpointSlices in the remote cluster to the controllers there.
const managedBy = "remote.virtual-kubelet.io"

// onlyPlace keeps the place of a pod, and its identity at home.
func onlyPlace(o any) (any, error) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels}}, nil
}

// isSelected reports whether the pod behind an address at home runs in a remote namespace: the remote Service has
// its address already. Pods of this node are in its own namespace before the watch shows it.
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

// remoteSlice returns an EndpointSlice of home in its remote form, for the remote Service; nil without an address. It
// leaves out pods in the remote cluster, of any node of home: the Service selects them. It leaves out nodes and
// zones of home, too.
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

// sliceName is one for all nodes of the home.
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

// isWanted reports whether a remote EndpointSlice belongs to an EndpointSlice of home with addresses for it,
// behind a global Service. The namespace does not matter, because another node may map it differently.
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
		if _, err := api.Create(ctx, want, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) { // otherwise another node has just made the slice
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
