// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// global is the label or annotation that marks global services, with the value true.
const global = "global"

// globalsTimeout limits one sync of all global services. The next sync does the rest.
const globalsTimeout = time.Minute

// globals copies global services and their home addresses to the remote cluster. The copies belong to all nodes
// of a home cluster: each node writes the same, so they stay up to date if a node is removed. The EndpointSlices
// are owned by their Service.
type globals struct {
	of               *Cluster
	factory          informers.SharedInformerFactory
	services, slices cache.SharedIndexInformer // in the remote cluster
	pods             cache.SharedIndexInformer // remote pods of all nodes of the home cluster; only their labels and namespaces
	said             map[string]bool           // failed writes that were logged, by key; used by one goroutine
	late             map[string]bool           // existing Services that are not in the watch cache, by key; used by one goroutine
}

func newGlobals(client kubernetes.Interface, of *Cluster) *globals {
	selector := labels.Set{LabelCluster: labelValue(of.config.Home.Cluster)}.String()
	f := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(withoutManagedFields),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector }))
	g := &globals{
		of: of, factory: f, said: map[string]bool{}, late: map[string]bool{},
		services: f.Core().V1().Services().Informer(), slices: f.Discovery().V1().EndpointSlices().Informer(), pods: f.Core().V1().Pods().Informer(),
	}
	_ = g.pods.SetTransform(onlyPlace) // neither call can fail before the informer runs
	_ = g.pods.AddIndexers(cache.Indexers{byUID: indexUID})
	return g
}

func (g *globals) run(ctx context.Context) {
	g.factory.StartWithContext(ctx)
	<-ctx.Done()
	g.factory.Shutdown()
}

// UsesEndpointSlices reports whether global services are configured.
func (c *Cluster) UsesEndpointSlices() bool { return c.config.Global != nil }

// UseEndpointSlices sets the lister of the home cluster's EndpointSlices.
func (c *Cluster) UseEndpointSlices(slices discoverylisters.EndpointSliceLister) {
	c.mu.Lock()
	c.homeSlices = slices
	c.mu.Unlock()
	c.copies.checkAll()
}

// MarkedGlobal is a Config.Global that reports whether a Service has the label or annotation global.
func MarkedGlobal(s *corev1.Service) bool {
	return s.Labels[global] == "true" || s.Annotations[global] == "true"
}

// Shared returns two home namespaces that are mapped to the same remote namespace, or "" if there are none. A
// global Service of one would select pods of the other, and Services of both could have the same name.
func Shared(namespaces map[string]string) (one, other string) {
	by := map[string]string{}
	for _, home := range slices.Sorted(maps.Keys(namespaces)) {
		remote := namespaces[home]
		if one, is := by[remote]; is {
			return one, home
		}
		by[remote] = home
	}
	return "", ""
}

// isGlobal reports whether a Service is copied to the remote cluster. The Service of the API server never is,
// because each cluster has its own.
func (g *globals) isGlobal(s *corev1.Service) bool {
	return g.of.config.Global(s) && (s.Namespace != metav1.NamespaceDefault || s.Name != serviceOfAPI)
}

// syncServices updates the copies of Services and EndpointSlices. It does nothing before the home cluster was
// listed.
func (g *globals) syncServices(ctx context.Context) {
	g.of.mu.Lock()
	home := g.of.homeSlices
	g.of.mu.Unlock()
	if home == nil || !g.services.HasSynced() || !g.slices.HasSynced() || !g.pods.HasSynced() {
		return
	}
	all, _ := g.of.config.Services.List(labels.Everything()) // a cached lister never fails
	for _, s := range all {
		namespace, _ := g.of.namespaces.remoteName(s.Namespace)
		if !g.isGlobal(s) || s.DeletionTimestamp != nil || !g.of.namespaces.isUsed(namespace) {
			continue
		}
		there := g.putService(ctx, g.remoteService(s, namespace))
		if there == nil {
			continue
		}
		behind, _ := home.EndpointSlices(s.Namespace).List(labels.Set{discoveryv1.LabelServiceName: s.Name}.AsSelector()) // a cached lister never fails
		for _, slice := range behind {
			if want := g.remoteSlice(slice, there); want != nil {
				g.putSlice(ctx, want)
			}
		}
	}
	if ctx.Err() != nil {
		return
	}
	for _, o := range g.services.GetStore().List() {
		there := o.(*corev1.Service)
		at, _ := homeOf(there)
		s, err := g.of.config.Services.Services(at.Namespace).Get(at.Name)
		if at.Name != "" && (err != nil || !g.isGlobal(s)) {
			g.recordWrite(ctx, there, g.of.client.CoreV1().Services(there.Namespace).Delete(ctx, there.Name, deleteByUID(there.UID)))
		}
	}
	for _, o := range g.slices.GetStore().List() {
		there := o.(*discoveryv1.EndpointSlice)
		if there.Labels[discoveryv1.LabelManagedBy] == managedBy && !g.isWanted(home, there) {
			g.recordWrite(ctx, there, g.of.client.DiscoveryV1().EndpointSlices(there.Namespace).Delete(ctx, there.Name, deleteByUID(there.UID)))
		}
	}
}

// remoteService returns the copy of a Service. Its selector also requires the home namespace, and it gets a new
// address.
func (g *globals) remoteService(s *corev1.Service, namespace string) *corev1.Service {
	from := s.DeepCopy().Spec
	spec := corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, Ports: from.Ports, Selector: g.of.config.Home.narrowSelector(s.Namespace, from.Selector), PublishNotReadyAddresses: from.PublishNotReadyAddresses,
		SessionAffinity: from.SessionAffinity, SessionAffinityConfig: from.SessionAffinityConfig,
	}
	for i := range spec.Ports {
		spec.Ports[i].NodePort = 0
	}
	if from.Type == corev1.ServiceTypeExternalName {
		spec.Type, spec.ExternalName = from.Type, from.ExternalName
	} else if from.ClusterIP == corev1.ClusterIPNone {
		spec.ClusterIP = corev1.ClusterIPNone
	}
	return &corev1.Service{ObjectMeta: g.remoteMeta(s, namespace, s.Name, nil), Spec: spec}
}

// remoteMeta returns the metadata of a copy, with the labels of the original and the given ones.
func (g *globals) remoteMeta(home metav1.Object, namespace, name string, more map[string]string) metav1.ObjectMeta {
	l := maps.Clone(home.GetLabels())
	maps.DeleteFunc(l, func(k, _ string) bool { return strings.HasPrefix(k, prefix) })
	if l == nil {
		l = map[string]string{}
	}
	l[LabelCluster] = labelValue(g.of.config.Home.Cluster)
	maps.Copy(l, more)
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: l,
		Annotations: map[string]string{AnnotationNamespace: home.GetNamespace(), AnnotationName: home.GetName()}}
}

// putService creates or updates a Service, and returns it. It returns nil if the Service could not be created, is
// not in the watch cache yet, or is a Service of another owner or home namespace, which stays unchanged.
func (g *globals) putService(ctx context.Context, want *corev1.Service) *corev1.Service {
	api := g.of.client.CoreV1().Services(want.Namespace)
	o, there, _ := g.services.GetStore().GetByKey(want.Namespace + "/" + want.Name) // fails only for an invalid key
	key := want.Namespace + "/" + want.Name
	if !there {
		made, err := api.Create(ctx, want, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) && !g.late[key] {
			g.late[key] = true // a node may have just created the Service; the second time it counts as foreign
			return nil
		}
		if g.recordWrite(ctx, want, err); err != nil {
			return nil
		}
		return made
	}
	delete(g.late, key)
	have := o.(*corev1.Service)
	at, _ := homeOf(want)
	if of, _ := homeOf(have); of != at {
		g.recordWrite(ctx, want, apierrors.NewAlreadyExists(corev1.Resource("services"), want.Name))
		return nil
	}
	next := have.DeepCopy()
	next.Labels, next.Annotations = want.Labels, want.Annotations
	spec := &next.Spec
	spec.Ports, spec.Selector, spec.PublishNotReadyAddresses = want.Spec.Ports, want.Spec.Selector, want.Spec.PublishNotReadyAddresses
	spec.SessionAffinity, spec.SessionAffinityConfig = want.Spec.SessionAffinity, want.Spec.SessionAffinityConfig
	if spec.Type, spec.ExternalName = want.Spec.Type, want.Spec.ExternalName; spec.Type == corev1.ServiceTypeExternalName {
		spec.ClusterIP, spec.ClusterIPs, spec.IPFamilies, spec.IPFamilyPolicy = "", nil, nil, nil
	}
	if equality.Semantic.DeepEqual(have, next) {
		return have
	}
	_, err := api.Update(ctx, next, metav1.UpdateOptions{})
	g.recordWrite(ctx, want, err)
	return have
}

// recordWrite logs once that an object could not be written. The next sync retries.
func (g *globals) recordWrite(ctx context.Context, o metav1.Object, err error) {
	key := o.GetNamespace() + "/" + o.GetName()
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // the next sync retries
		delete(g.said, key)
		return
	}
	if apierrors.IsAlreadyExists(err) && !g.said[key] {
		log.G(ctx).WithField("name", key).Warn("A global Service cannot be in the remote cluster: another one has its name there")
	} else if !g.said[key] && ctx.Err() == nil {
		log.G(ctx).WithError(err).WithField("name", key).Warn("A global Service is not up to date in the remote cluster")
	}
	g.said[key] = true
}
