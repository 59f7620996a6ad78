// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// podRequestTimeout bounds a request to the API server, because a silently broken connection must not block a worker.
	podRequestTimeout = 30 * time.Second
	// livePage is the page size of a list of all pods, because pods may be large.
	livePage = 200
)

// podCache reads the pods of this node, from the informer's cache or directly from the API server.
type podCache struct {
	client   corev1client.PodsGetter
	pods     corev1listers.PodLister
	wanted   PodEventFilterFunc
	nodeName string // "": unknown
}

func keyOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// pod returns the pod in the informer's cache, or nil if it is gone or does not belong to this controller. The pod is shared: the caller
// must not change it.
func (c *podCache) pod(ctx context.Context, key string) *corev1.Pod {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil
	}
	pod, err := c.pods.Pods(namespace).Get(name)
	if err != nil || !c.wanted(ctx, pod) {
		return nil
	}
	return pod
}

// all returns the pods in the informer's cache that belong to this controller. The pods are shared, the slice is
// not.
func (c *podCache) all(ctx context.Context) []*corev1.Pod {
	pods, err := c.pods.List(labels.Everything())
	if err != nil { // cannot happen: it reads memory
		log.G(ctx).WithError(err).Warn("cannot list the cached pods")
	}
	return slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return !c.wanted(ctx, pod) })
}

// readLive reads a pod directly from the API server; nil means that the pod does not exist. With a known node name it uses a request that
// the Node authorizer allows even for missing pods: a GET would be forbidden.
func (c *podCache) readLive(ctx context.Context, key string) (*corev1.Pod, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, podRequestTimeout)
	defer cancel()
	if c.nodeName == "" {
		pod, err := c.client.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return pod, err
	}
	list, err := c.client.Pods(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.Set{"metadata.name": name, "spec.nodeName": c.nodeName}.String(),
	})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if list.Items[i].Name == name {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// podVersion is the version of a pod in the API server; the zero value is no pod.
type podVersion struct {
	uid     types.UID
	version string
}

// liveVersions reads the pods of the node directly from the API server.
func (c *podCache) liveVersions(ctx context.Context) (map[string]podVersion, error) {
	live := map[string]podVersion{}
	opts := c.ofNode(livePage)
	for {
		page, err := withTimeout(ctx, podRequestTimeout, func(ctx context.Context) (*corev1.PodList, error) {
			return c.client.Pods(metav1.NamespaceAll).List(ctx, opts)
		})
		if err != nil {
			return nil, fmt.Errorf("list the pods of the node: %w", err)
		}
		for i := range page.Items {
			live[keyOf(&page.Items[i])] = podVersion{page.Items[i].UID, page.Items[i].ResourceVersion}
		}
		if page.Continue == "" {
			return live, nil
		}
		opts.Continue = page.Continue
	}
}

// probeServer makes the cheapest request that this identity may make.
func (c *podCache) probeServer(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	options := c.ofNode(1)
	options.ResourceVersion = "0"
	_, err := c.client.Pods(metav1.NamespaceAll).List(ctx, options)
	return err
}

// ofNode selects the pods of the node, with at most limit pods in a response.
func (c *podCache) ofNode(limit int64) metav1.ListOptions {
	opts := metav1.ListOptions{Limit: limit}
	if c.nodeName != "" {
		opts.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", c.nodeName).String()
	}
	return opts
}
