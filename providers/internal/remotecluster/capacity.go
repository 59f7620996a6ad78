// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/storage"
)

// nodeWatch watches the nodes of the remote cluster, and the resource requests of other pods on them.
type nodeWatch struct {
	home      Home
	factories []informers.SharedInformerFactory
	nodes     cache.SharedIndexInformer
	others    []cache.SharedIndexInformer // pods that do not belong to the node

	client   kubernetes.Interface
	failures Failures // of the nodes, by "", and of pods, by the selector
}

// runningSelector selects pods that use resources of a node.
const runningSelector = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"

// newNodeWatch returns a nodeWatch. It does not watch the pods of this node, because remoteCache already does.
func newNodeWatch(client kubernetes.Interface, home Home) *nodeWatch {
	plain := informers.NewSharedInformerFactory(client, 0)
	w := &nodeWatch{home: home, client: client, factories: []informers.SharedInformerFactory{plain}, nodes: plain.Core().V1().Nodes().Informer()}
	for _, selector := range home.othersSelectors() {
		running := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector, o.LabelSelector = runningSelector, selector
		}))
		pods := running.Core().V1().Pods().Informer()
		w.prepareInformer(pods, selector)
		w.factories, w.others = append(w.factories, running), append(w.others, pods)
	}
	w.prepareInformer(w.nodes, "")
	return w
}

func (w *nodeWatch) prepareInformer(informer cache.SharedIndexInformer, of string) {
	_ = informer.SetTransform(onlyRequests) // neither call can fail before the informer runs
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { w.failures.Note(of, err) })
}

// listKind lists the objects of an informer.
func (w *nodeWatch) listKind(ctx context.Context, of string, one metav1.ListOptions) (err error) {
	if of == "" {
		_, err = w.client.CoreV1().Nodes().List(ctx, one)
		return err
	}
	one.FieldSelector, one.LabelSelector = runningSelector, of
	_, err = w.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, one)
	return err
}

// onlyRequests drops all fields that Room does not need.
func onlyRequests(o any) (any, error) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return withoutManagedFields(o)
	}
	small := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels}}
	small.Spec.NodeName, small.Spec.Overhead, small.Spec.Resources = pod.Spec.NodeName, pod.Spec.Overhead, pod.Spec.Resources
	for _, list := range []struct {
		from []corev1.Container
		to   *[]corev1.Container
	}{{pod.Spec.InitContainers, &small.Spec.InitContainers}, {pod.Spec.Containers, &small.Spec.Containers}} {
		for i := range list.from {
			*list.to = append(*list.to, corev1.Container{RestartPolicy: list.from[i].RestartPolicy, Resources: corev1.ResourceRequirements{Requests: list.from[i].Resources.Requests}})
		}
	}
	return small, nil
}

func (w *nodeWatch) run(ctx context.Context) {
	for _, f := range w.factories {
		f.StartWithContext(ctx)
	}
	<-ctx.Done()
	for _, f := range w.factories {
		f.Shutdown()
	}
}

func (w *nodeWatch) hasSynced() bool {
	return w.nodes.HasSynced() && !slices.ContainsFunc(w.others, func(pods cache.SharedIndexInformer) bool { return !pods.HasSynced() })
}

// checkRoom returns an error if no pod can run in the remote cluster, or if this is unknown.
func (w *nodeWatch) checkRoom(ctx context.Context) error {
	var err error
	if w.hasSynced() {
		err = w.failures.Check(ctx, w.listKind)
	} else if err = w.failures.Any(); err == nil {
		return errors.New("the nodes and pods of the remote cluster were not listed yet")
	}
	if err != nil {
		return fmt.Errorf("look for room in the remote cluster: %w", err)
	}
	nodes := w.allNodes()
	notReady := NotReady(nodes)
	switch {
	case len(nodes) == 0:
		return errors.New("the remote cluster has no nodes")
	case len(notReady) == len(nodes):
		return fmt.Errorf("no node of the remote cluster is Ready: %s", strings.Join(notReady, ", "))
	}
	return nil
}

func (w *nodeWatch) allNodes() (nodes []*corev1.Node) {
	for _, o := range w.nodes.GetStore().List() {
		nodes = append(nodes, o.(*corev1.Node))
	}
	return nodes
}

// NotReady returns the names of the nodes that are not Ready, in the order of nodes.
func NotReady(nodes []*corev1.Node) (names []string) {
	for _, n := range nodes {
		if !isReady(n) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// Room returns the allocatable resources of the Ready schedulable nodes, minus the requests of other pods. It
// does not subtract the requests of this node's pods: the scheduler of the home cluster does that.
func Room(nodes []*corev1.Node, pods []*corev1.Pod, home Home) corev1.ResourceList {
	room := corev1.ResourceList{}
	counts := map[string]bool{}
	for _, n := range nodes {
		if !isReady(n) || n.Spec.Unschedulable {
			continue
		}
		counts[n.Name] = true
		for name, q := range n.Status.Allocatable {
			addQuantity(room, name, q, 1)
		}
	}
	for _, pod := range pods {
		if !counts[pod.Spec.NodeName] || home.ownsObject(pod) {
			continue
		}
		for name, q := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
			if _, has := room[name]; has {
				addQuantity(room, name, q, -1)
			}
		}
		if _, has := room[corev1.ResourcePods]; has {
			addQuantity(room, corev1.ResourcePods, *resource.NewQuantity(1, resource.DecimalSI), -1)
		}
	}
	for name, q := range room {
		if q.Sign() < 0 {
			room[name] = *resource.NewQuantity(0, q.Format)
		}
	}
	return room
}

func addQuantity(to corev1.ResourceList, name corev1.ResourceName, q resource.Quantity, sign int) {
	sum, has := to[name]
	if !has {
		sum = *resource.NewQuantity(0, q.Format)
	}
	if sign > 0 {
		sum.Add(q)
	} else {
		sum.Sub(q)
	}
	to[name] = sum
}

// conditionNodes is the condition of the node that reports whether all nodes of the remote cluster are Ready.
const conditionNodes corev1.NodeConditionType = "RemoteNodesReady"

// storagePerPod is the ephemeral storage offered for each pod if the configured capacity does not include it.
const storagePerPod = "20Gi"

// setRoom sets the capacity of n to the free resources of the remote cluster. If they are unknown, it leaves them
// out instead of setting 0: otherwise the node would reject pods that are already bound to it.
func (c *Cluster) setRoom(n *corev1.Node) {
	room := storage.Offer(c.config.Capacity, resource.MustParse(storagePerPod))
	if c.nodes != nil {
		room = corev1.ResourceList{}
		if c.nodes.hasSynced() {
			nodes := c.nodes.allNodes()
			var pods []*corev1.Pod
			for _, others := range c.nodes.others {
				for _, o := range others.GetStore().List() {
					pods = append(pods, o.(*corev1.Pod))
				}
			}
			room = Room(nodes, pods, c.config.Home)
			n.Status.Conditions = withNodes(n.Status.Conditions, NotReady(nodes), metav1.Now())
		}
	}
	n.Status.Capacity, n.Status.Allocatable = room.DeepCopy(), room.DeepCopy()
}

// withNodes adds or updates the condition conditionNodes.
func withNodes(conditions []corev1.NodeCondition, notReady []string, now metav1.Time) []corev1.NodeCondition {
	want := corev1.NodeCondition{Type: conditionNodes, Status: corev1.ConditionTrue, Reason: "AllReady", LastHeartbeatTime: now, LastTransitionTime: now}
	if len(notReady) > 0 {
		const shown = 10 // the maximum number of names in the message
		want.Status, want.Reason = corev1.ConditionFalse, "SomeNotReady"
		want.Message = fmt.Sprintf("%d not Ready: %s", len(notReady), strings.Join(notReady[:min(len(notReady), shown)], ", "))
	}
	out := slices.Clone(conditions)
	i := slices.IndexFunc(out, func(c corev1.NodeCondition) bool { return c.Type == conditionNodes })
	switch {
	case i < 0:
		return append(out, want)
	case out[i].Status == want.Status:
		want.LastTransitionTime = out[i].LastTransitionTime
		want.LastHeartbeatTime = out[i].LastHeartbeatTime
	}
	out[i] = want
	return out
}

// tellNode reports a changed capacity of the remote cluster.
func (c *Cluster) tellNode() {
	if c.nodes == nil || !c.nodes.hasSynced() {
		return
	}
	c.mu.Lock()
	base, notify := c.base, c.notifyNode
	c.mu.Unlock()
	if base == nil || notify == nil {
		return
	}
	next := base.DeepCopy()
	c.setRoom(next)
	if reflect.DeepEqual(base.Status, next.Status) {
		return
	}
	c.mu.Lock()
	c.base = next
	c.mu.Unlock()
	notify(next)
}
