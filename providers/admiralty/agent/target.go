// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// aliveWithin is the timeout for checkAlive.
const aliveWithin = 3 * time.Second

// target watches the cluster of a Target.
type target struct {
	Target
	client      kubernetes.Interface
	factories   []informers.SharedInformerFactory
	nodes, pods cache.SharedIndexInformer

	mu  sync.Mutex
	err error // guarded by mu; why the last list or watch failed
}

// newTarget returns a target. It calls changed when the free resources may have increased.
func newTarget(t Target, changed func()) (*target, error) {
	client, err := kubernetes.NewForConfig(t.access)
	if err != nil {
		return nil, fmt.Errorf("make the client of target %s: %w", t.Node, err)
	}
	return watchTarget(t, client, changed)
}

// watchTarget returns a target that uses the client.
func watchTarget(t Target, client kubernetes.Interface, changed func()) (*target, error) {
	w := &target{Target: t, client: client}
	running := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
	}))
	plain := informers.NewSharedInformerFactory(client, 0)
	w.factories = []informers.SharedInformerFactory{plain, running}
	w.nodes, w.pods = plain.Core().V1().Nodes().Informer(), running.Core().V1().Pods().Informer()
	for _, informer := range []cache.SharedIndexInformer{w.nodes, w.pods} {
		_ = informer.SetTransform(onlyRequests) // neither call can fail before the informer runs
		_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.err = err
		})
		if err := onChange(informer, changed); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// onChange calls changed for every event.
func onChange(informer cache.SharedIndexInformer, changed func()) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
	})
	return err
}

// onlyRequests reduces a pod to its requests, in one container, and its node.
func onlyRequests(o any) (any, error) {
	switch in := o.(type) {
	case *corev1.Pod:
		if in.Spec.Containers == nil || in.Spec.Containers[0].Name == "" {
			return in, nil // the pod is already transformed
		}
		out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: in.Name, UID: in.UID, ResourceVersion: in.ResourceVersion, Labels: in.Labels}}
		out.Spec.NodeName = in.Spec.NodeName
		out.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: podRequests(in, resourcehelper.PodResourcesOptions{})}}}
		return out, nil
	case *corev1.Node:
		in.ManagedFields, in.Status.Images = nil, nil
	}
	return o, nil
}

func (t *target) run(ctx context.Context) {
	for _, f := range t.factories {
		f.StartWithContext(ctx)
	}
	<-ctx.Done()
	for _, f := range t.factories {
		f.Shutdown()
	}
}

// state has the free resources of a target cluster, and the source UIDs of the pods that exist there. If err is
// set, the state is unknown.
type state struct {
	rooms rooms
	there map[types.UID]bool
	err   error
}

// clusterState returns the state of the cluster from the watch caches.
func (t *target) clusterState() *state {
	if !t.nodes.HasSynced() || !t.pods.HasSynced() {
		t.mu.Lock()
		defer t.mu.Unlock()
		return &state{err: errors.Join(errors.New("it was not listed yet"), t.err)}
	}
	var nodes []*corev1.Node
	for _, o := range t.nodes.GetStore().List() {
		nodes = append(nodes, o.(*corev1.Node))
	}
	var pods []*corev1.Pod
	there := map[types.UID]bool{}
	for _, o := range t.pods.GetStore().List() {
		pod := o.(*corev1.Pod)
		pods = append(pods, pod)
		if uid := pod.Labels[remotecluster.LabelUID]; uid != "" {
			there[types.UID(uid)] = true
		}
	}
	return &state{rooms: roomsOf(nodes, pods), there: there}
}

// checkAlive returns an error if the target does not answer, because the watch caches may then be stale.
func (t *target) checkAlive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, aliveWithin)
	defer cancel()
	one := metav1.ListOptions{Limit: 1} // the same lists as the watches: even a ready API server may forbid them
	_, err := t.client.CoreV1().Nodes().List(ctx, one)
	if err == nil {
		_, err = t.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, one)
	}
	if err != nil {
		return fmt.Errorf("it does not answer: %w", err)
	}
	return nil
}
