// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// Pods returns a client for the pods of a namespace. It has the verbs that a
// pod controller uses; another one panics.
func (a *API) Pods(namespace string) corev1client.PodInterface {
	return &client{api: a, namespace: namespace}
}

type client struct {
	corev1client.PodInterface // nil: the verbs that are missing
	api                       *API
	namespace                 string
}

func (c *client) begin(ctx context.Context, verb, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.api.Fault != nil {
		return c.api.Fault(verb, c.namespace, name)
	}
	return nil
}

func (c *client) Get(ctx context.Context, name string, _ metav1.GetOptions) (*corev1.Pod, error) {
	if err := c.begin(ctx, "get", name); err != nil {
		return nil, err
	}
	if pod := c.api.Pod(c.namespace, name); pod != nil {
		return pod, nil
	}
	return nil, apierrors.NewNotFound(resource, name)
}

func (c *client) List(ctx context.Context, _ metav1.ListOptions) (*corev1.PodList, error) {
	if err := c.begin(ctx, "list", ""); err != nil {
		return nil, err
	}
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatInt(c.api.revision, 10)}}
	for _, pod := range c.api.pods {
		if c.namespace == "" || c.namespace == pod.Namespace {
			list.Items = append(list.Items, *pod.DeepCopy())
		}
	}
	return list, nil
}

func (c *client) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	if err := c.begin(ctx, "watch", ""); err != nil {
		return nil, err
	}
	since, err := strconv.ParseInt(opts.ResourceVersion, 10, 64)
	if err != nil {
		return nil, apierrors.NewBadRequest("resourceVersion: " + err.Error())
	}
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	if since < c.api.oldest {
		return nil, apierrors.NewResourceExpired("too old resource version")
	}
	w := newPodWatch(c.api)
	for _, e := range c.api.events {
		if e.revision > since {
			w.send(watch.Event{Type: e.kind, Object: e.pod.DeepCopy()})
		}
	}
	c.api.watches[w] = true
	return w, nil
}

func (c *client) Patch(ctx context.Context, name string, kind types.PatchType, body []byte, _ metav1.PatchOptions, sub ...string) (*corev1.Pod, error) {
	key := keyOf(c.namespace, name)
	c.note(Write{Verb: "patch", Key: key, Body: string(body), At: time.Now()})
	if err := c.begin(ctx, "patch", name); err != nil {
		return nil, err
	}
	if kind != types.StrategicMergePatchType || len(sub) != 1 || sub[0] != "status" {
		return nil, apierrors.NewBadRequest("only strategic-merge patches of the status are served here")
	}
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	old := c.api.pods[key]
	if old == nil {
		return nil, apierrors.NewNotFound(resource, name)
	}
	before, err := json.Marshal(old)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, body, corev1.Pod{})
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	var patched corev1.Pod
	if err := json.Unmarshal(after, &patched); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return c.api.applyPatch(key, &patched, patched.UID)
}

func (c *client) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	w := Write{Verb: "delete", Key: keyOf(c.namespace, name), At: time.Now()}
	if opts.Preconditions != nil && opts.Preconditions.UID != nil {
		w.UID = *opts.Preconditions.UID
	}
	c.note(w)
	if err := c.begin(ctx, "delete", name); err != nil {
		return err
	}
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	return c.api.delete(keyOf(c.namespace, name), opts)
}

func (c *client) note(w Write) {
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	c.api.writes = append(c.api.writes, w)
}

// Informer returns a new informer of all pods, with its lister. It has to be run.
func (a *API) Informer(resync time.Duration) *Informer {
	all := a.Pods("")
	lw := listWatch{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return all.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return all.Watch(ctx, o)
		},
	}}
	return &Informer{cache.NewSharedIndexInformer(lw, &corev1.Pod{}, resync, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
}

// listWatch keeps the reflector from asking for a streamed list.
type listWatch struct{ *cache.ListWatch }

func (listWatch) IsWatchListSemanticsUnSupported() bool { return true }

// Informer is an informer of the pods of an API.
type Informer struct{ informer cache.SharedIndexInformer }

// Informer returns the shared informer.
func (i *Informer) Informer() cache.SharedIndexInformer { return i.informer }

// Lister returns a lister of its cache.
func (i *Informer) Lister() corev1listers.PodLister {
	return corev1listers.NewPodLister(i.informer.GetIndexer())
}
