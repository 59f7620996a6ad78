// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/internal/apiwatch"
)

// Pods returns a client for the pods of a namespace. It has the verbs of a pod controller; other verbs panic.
func (a *API) Pods(namespace string) corev1client.PodInterface {
	return &client{api: a, namespace: namespace}
}

type client struct {
	corev1client.PodInterface // nil: for the missing verbs
	api                       *API
	namespace                 string
}

func (c *client) beginCall(ctx context.Context, verb, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.api.Fault != nil {
		return c.api.Fault(verb, c.namespace, name)
	}
	return nil
}

// answerCall returns the answer for the client, or the error in its place.
func answerCall[T any](c *client, verb, name string, got T, err error) (T, error) {
	if err == nil && c.api.Lost != nil {
		err = c.api.Lost(verb, c.namespace, name)
	}
	if err != nil {
		var none T
		return none, err
	}
	return got, nil
}

func (c *client) Get(ctx context.Context, name string, _ metav1.GetOptions) (*corev1.Pod, error) {
	if err := c.beginCall(ctx, "get", name); err != nil {
		return nil, err
	}
	pod, err := c.get(name)
	return answerCall(c, "get", name, pod, err)
}

func (c *client) get(name string) (*corev1.Pod, error) {
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	pods := c.api.pods
	if l := c.api.lag; l != nil && l.all {
		pods = c.api.podsAt(l.revision)
	}
	if pod := pods[keyOf(c.namespace, name)]; pod != nil {
		return pod.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(resource, name)
}

func (c *client) Patch(ctx context.Context, name string, kind types.PatchType, body []byte, _ metav1.PatchOptions, sub ...string) (*corev1.Pod, error) {
	c.recordWrite(Write{Verb: "patch", Key: keyOf(c.namespace, name), Body: string(body), At: time.Now()})
	if err := c.beginCall(ctx, "patch", name); err != nil {
		return nil, err
	}
	if kind != types.StrategicMergePatchType || len(sub) != 1 || sub[0] != "status" {
		return nil, apierrors.NewBadRequest("only strategic-merge patches of the status are served here")
	}
	pod, err := c.api.patchStatus(keyOf(c.namespace, name), body)
	return answerCall(c, "patch", name, pod, err)
}

func (c *client) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	w := Write{Verb: "delete", Key: keyOf(c.namespace, name), At: time.Now()}
	if opts.Preconditions != nil && opts.Preconditions.UID != nil {
		w.UID = *opts.Preconditions.UID
	}
	c.recordWrite(w)
	if err := c.beginCall(ctx, "delete", name); err != nil {
		return err
	}
	c.api.mu.Lock()
	err := c.api.deletePod(Client, keyOf(c.namespace, name), opts)
	c.api.mu.Unlock()
	_, err = answerCall(c, "delete", name, struct{}{}, err)
	return err
}

func (c *client) recordWrite(w Write) {
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	c.api.writes = append(c.api.writes, w)
}

// Informer returns a new informer of all pods, with its lister. The caller must run it.
func (a *API) Informer(resync time.Duration) *Informer {
	all := a.Pods("")
	source := apiwatch.NewSource(
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return all.List(ctx, o) },
		func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return all.Watch(ctx, o) },
	)
	return &Informer{cache.NewSharedIndexInformer(source, &corev1.Pod{}, resync, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
}

// Informer is an informer of the pods of an API.
type Informer struct{ informer cache.SharedIndexInformer }

// Informer returns the shared informer.
func (i *Informer) Informer() cache.SharedIndexInformer { return i.informer }

// Lister returns a lister for its cache.
func (i *Informer) Lister() corev1listers.PodLister {
	return corev1listers.NewPodLister(i.informer.GetIndexer())
}
