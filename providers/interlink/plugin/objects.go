// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	kuberecord "k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// objects holds the objects that came with pods, and replaces the Kubernetes API server. It implements
// node.PodObjects and node.PullCredentials.
type objects struct {
	pods, configMaps, secrets, services cache.Indexer

	mu  sync.Mutex
	all map[types.UID]*record // guarded by mu
}

func newObjects() *objects {
	indexer := func() cache.Indexer {
		return cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	return &objects{pods: indexer(), configMaps: indexer(), secrets: indexer(), services: indexer(), all: map[types.UID]*record{}}
}

// config returns the configuration for making the provider.
func (o *objects) config(n *corev1.Node, events kuberecord.EventRecorder) nodeutil.ProviderConfig {
	return nodeutil.ProviderConfig{
		Pods: corev1listers.NewPodLister(o.pods), ConfigMaps: corev1listers.NewConfigMapLister(o.configMaps),
		Secrets: corev1listers.NewSecretLister(o.secrets), Services: corev1listers.NewServiceLister(o.services), Node: n, Recorder: events,
	}
}

// add stores the objects that came with a pod. given is the form of the pod that the provider gets.
func (o *objects) add(r *record, given *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kept := *r
	o.all[r.Pod.UID] = &kept
	_ = o.pods.Add(given) // Add fails only for an object without metadata
	for i := range kept.ConfigMaps {
		m := kept.ConfigMaps[i].DeepCopy()
		m.Namespace = r.Pod.Namespace
		_ = o.configMaps.Add(m)
	}
	for i := range kept.Secrets {
		s := kept.Secrets[i].DeepCopy()
		s.Namespace = r.Pod.Namespace
		_ = o.secrets.Add(s)
	}
}

// seen stores the status of a pod, whose addresses the environment of the pod needs. given is a private copy.
func (o *objects) seen(given *corev1.Pod, status *corev1.PodStatus) {
	status.DeepCopyInto(&given.Status)
	_ = o.pods.Update(given)
}

func (o *objects) remove(r *record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, r.Pod.UID)
	if have, ok, _ := o.pods.Get(r.Pod); ok && have.(*corev1.Pod).UID == r.Pod.UID {
		_ = o.pods.Delete(r.Pod)
	}
	used := map[string]bool{} // two pods may use objects of the same name
	for _, other := range o.all {
		for i := range other.ConfigMaps {
			used["c/"+other.Pod.Namespace+"/"+other.ConfigMaps[i].Name] = true
		}
		for i := range other.Secrets {
			used["s/"+other.Pod.Namespace+"/"+other.Secrets[i].Name] = true
		}
	}
	for i := range r.ConfigMaps {
		if !used["c/"+r.Pod.Namespace+"/"+r.ConfigMaps[i].Name] {
			_ = o.configMaps.Delete(cache.ExplicitKey(r.Pod.Namespace + "/" + r.ConfigMaps[i].Name))
		}
	}
	for i := range r.Secrets {
		if !used["s/"+r.Pod.Namespace+"/"+r.Secrets[i].Name] {
			_ = o.secrets.Delete(cache.ExplicitKey(r.Pod.Namespace + "/" + r.Secrets[i].Name))
		}
	}
}

// ConfigMap implements node.PodObjects.
func (o *objects) ConfigMap(_ context.Context, pod *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.all[pod.UID]; r != nil {
		for i := range r.ConfigMaps {
			if r.ConfigMaps[i].Name == name {
				return &r.ConfigMaps[i], nil
			}
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
}

// Secret implements node.PodObjects.
func (o *objects) Secret(_ context.Context, pod *corev1.Pod, name string) (*corev1.Secret, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.all[pod.UID]; r != nil {
		for i := range r.Secrets {
			if r.Secrets[i].Name == name {
				return &r.Secrets[i], nil
			}
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
}

// Container implements node.PodObjects. The node has resolved the environment, except for the addresses of the pod.
func (o *objects) Container(_ context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name != name {
				continue
			}
			c := list[i].DeepCopy()
			for j := range c.Env {
				if err := address(&c.Env[j], &pod.Status); err != nil {
					return nil, err
				}
			}
			return c, nil
		}
	}
	return nil, fmt.Errorf("pod %s/%s has no container %s", pod.Namespace, pod.Name, name)
}

// address fills in a variable for an address. A variable stays as it is while its address is unknown.
func address(e *corev1.EnvVar, status *corev1.PodStatus) error {
	if e.ValueFrom == nil {
		return nil
	}
	if e.ValueFrom.FieldRef == nil {
		return fmt.Errorf("variable %s: the virtual node has not resolved it", e.Name)
	}
	var value string
	switch e.ValueFrom.FieldRef.FieldPath {
	case "status.podIP":
		value = status.PodIP
	case "status.hostIP":
		value = status.HostIP
	case "status.podIPs":
		value = joined(status.PodIPs, func(ip corev1.PodIP) string { return ip.IP })
	case "status.hostIPs":
		value = joined(status.HostIPs, func(ip corev1.HostIP) string { return ip.IP })
	default:
		return fmt.Errorf("variable %s: the virtual node has not resolved %s", e.Name, e.ValueFrom.FieldRef.FieldPath)
	}
	if value != "" {
		e.Value, e.ValueFrom = value, nil
	}
	return nil
}

// joined returns addresses with commas between them.
func joined[T any](all []T, of func(T) string) string {
	var ips []string
	for _, one := range all {
		ips = append(ips, of(one))
	}
	return strings.Join(ips, ",")
}

// PullCredentials implements node.PullCredentials. The protocol does not carry credentials.
func (*objects) PullCredentials(context.Context, *corev1.Pod) ([]node.RegistryCredential, error) {
	return nil, nil
}
