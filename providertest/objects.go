// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/internal/podenv"
	"github.com/virtual-kubelet/virtual-kubelet/internal/podservices"
)

type runtimeObject = runtime.Object

// objects has the ConfigMaps and Secrets of a check, and its pods.
type objects struct {
	configMaps, secrets, services, pods cache.Indexer

	mu  sync.Mutex
	all []*corev1.Pod // guarded by mu; existing pods in the order of their creation
}

func newObjects(namespace string) *objects {
	index := func() cache.Indexer {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	o := &objects{configMaps: index(), secrets: index(), services: index(), pods: index()}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	for _, err := range []error{
		o.configMaps.Add(&corev1.ConfigMap{ObjectMeta: meta(objectName), Data: map[string]string{"color": "green", "shape": "round"}}),
		o.secrets.Add(&corev1.Secret{ObjectMeta: meta(objectName), Data: map[string][]byte{"password": []byte(secretValue)}}),
	} {
		if err != nil {
			panic(err) // the key function fails for objects without metadata only
		}
	}
	return o
}

// These are the contents of the ConfigMap and the Secret of every check.
const (
	objectName  = "contract"
	secretValue = "correct-horse-battery"
)

func (o *objects) configMapLister() corev1listers.ConfigMapLister {
	return corev1listers.NewConfigMapLister(o.configMaps)
}

func (o *objects) secretLister() corev1listers.SecretLister {
	return corev1listers.NewSecretLister(o.secrets)
}

func (o *objects) serviceLister() corev1listers.ServiceLister {
	return corev1listers.NewServiceLister(o.services)
}

// nodePods is the lister of the pods of the node.
type nodePods struct{ c *C }

func (p *nodePods) podLister() corev1listers.PodLister {
	return corev1listers.NewPodLister(p.c.objects.pods)
}

// ConfigMap returns a ConfigMap of the check.
func (o *objects) ConfigMap(_ context.Context, pod *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	return o.configMapLister().ConfigMaps(pod.Namespace).Get(name)
}

// Secret returns a Secret of the check.
func (o *objects) Secret(_ context.Context, pod *corev1.Pod, name string) (*corev1.Secret, error) {
	return o.secretLister().Secrets(pod.Namespace).Get(name)
}

// Container returns a container with its environment.
func (o *objects) Container(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
	return podenv.ResolveContainer(ctx, o.environmentConfig(), pod, name)
}

func (o *objects) environmentConfig() podenv.Config {
	return podenv.Config{Objects: byName{o}, Services: podservices.Lister{ServiceLister: o.serviceLister()}, HostIPs: func() []corev1.HostIP { return nil }}
}

// byName reads objects for environments.
type byName struct{ o *objects }

func (b byName) ConfigMap(_ context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return b.o.configMapLister().ConfigMaps(namespace).Get(name)
}

func (b byName) Secret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	return b.o.secretLister().Secrets(namespace).Get(name)
}

// add records a new pod.
func (o *objects) add(pod *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, pod)
	if err := o.pods.Add(pod); err != nil {
		panic(fmt.Sprintf("add pod %s to the lister: %v", pod.Name, err))
	}
}

// remove forgets a removed pod.
func (o *objects) remove(uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = slices.DeleteFunc(o.all, func(p *corev1.Pod) bool { return p.UID == uid })
}

// recordedPods returns copies of the recorded pods.
func (o *objects) recordedPods() []*corev1.Pod {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make([]*corev1.Pod, len(o.all))
	for i, p := range o.all {
		out[i] = p.DeepCopy()
	}
	return out
}
