// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

const (
	// refreshEvery is how often copies are compared with what they are of.
	refreshEvery = 15 * time.Second
	// requestTimeout bounds a request that is no stream.
	requestTimeout = 30 * time.Second
)

// Config says which node of which home uses the remote cluster, and how.
type Config struct {
	Home Home
	// REST is the access to the remote cluster, with the limits of its requests.
	REST *rest.Config
	// Namespace is where all pods go; "": each namespace of home has one, which is made when it is needed.
	Namespace string
	// Namespaces are remote namespaces that exist, by that at home. They go before the others; with Namespace there are none.
	Namespaces map[string]string
	// ServiceAccount is that of pods over there. "": the namespace's default one.
	ServiceAccount string
	// Place says where a pod may run. Nil: anywhere.
	Place func(*corev1.Pod) (Placement, error)
	// Annotations reports which annotations of pods the remote cluster sees. Nil: none.
	Annotations func(key string) bool
	// Capacity is what the node offers. Nil: what the Ready nodes of the remote cluster have free.
	Capacity corev1.ResourceList
	// Pods and Services are those at home.
	Pods     corev1listers.PodLister
	Services corev1listers.ServiceLister
	// RefreshEvery is how often copies are compared with what they are of. 0: 15 seconds.
	RefreshEvery time.Duration
}

// Cluster is the remote cluster for one node. Its methods are those of a provider.
type Cluster struct {
	config  Config
	client  kubernetes.Interface
	streams *rest.Config // of sessions
	cache   *remoteCache
	nodes   *nodeWatch // nil: the capacity is configured

	// Set before RunInBackground, constant afterwards.
	notify  func(*corev1.Pod)
	objects node.PodObjects
	tokens  node.PodTokens

	namespaces namespaces
	copies     copies

	mu         sync.Mutex
	made       map[types.UID]madePod     // guarded by mu; that the watch has not shown yet
	stopping   map[types.UID]bool        // guarded by mu; home asked for the stop
	removed    map[types.UID]bool        // guarded by mu; somebody else asked for it
	tracked    map[types.UID]*corev1.Pod // guarded by mu; as they are at home, whose copies are kept up to date
	notLoop    bool                      // guarded by mu; the remote cluster is known to be another one than home
	notifyNode func(*corev1.Node)        // guarded by mu; nil: nobody asks yet
	base       *corev1.Node              // guarded by mu; the node as it was configured
}

// madePod is a pod as the create answered.
type madePod struct {
	pod *corev1.Pod
	at  time.Time
}

// New returns the remote cluster of a node. It asks for nothing before RunInBackground.
func New(c Config) (*Cluster, error) {
	client, err := kubernetes.NewForConfig(c.REST)
	if err != nil {
		return nil, fmt.Errorf("make the client of the remote cluster: %w", err)
	}
	if c.RefreshEvery == 0 {
		c.RefreshEvery = refreshEvery
	}
	cl := &Cluster{
		config: c, client: client, streams: rest.CopyConfig(c.REST),
		made: map[types.UID]madePod{}, stopping: map[types.UID]bool{}, removed: map[types.UID]bool{}, tracked: map[types.UID]*corev1.Pod{},
	}
	cl.cache = newCache(client, c.Home, c.Namespace)
	cl.copies.init(cl)
	cl.namespaces.of = cl
	if c.Capacity == nil {
		cl.nodes = newNodeWatch(client, c.Home)
	}
	if err := cl.watchPods(); err != nil {
		return nil, err
	}
	return cl, nil
}

// UsePodObjects takes what reads ConfigMaps and Secrets at home.
func (c *Cluster) UsePodObjects(o node.PodObjects) { c.objects = o }

// UsePodTokens takes what gives tokens of home.
func (c *Cluster) UsePodTokens(t node.PodTokens) { c.tokens = t }

// NotifyPods takes what changes are told to.
func (c *Cluster) NotifyPods(_ context.Context, notify func(*corev1.Pod)) { c.notify = notify }

// RunInBackground watches the remote cluster, and keeps copies and tokens up to date, until ctx ends.
func (c *Cluster) RunInBackground(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { c.cache.run(ctx) })
	if c.nodes != nil {
		wg.Go(func() { c.nodes.run(ctx) })
		wg.Go(func() {
			if cache.WaitForCacheSync(ctx.Done(), c.cache.synced, c.nodes.synced) {
				c.copies.soon() // the node has room now
			}
		})
	}
	ticker := time.NewTicker(c.config.RefreshEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-c.copies.wake:
		case <-ctx.Done():
			return nil
		}
		if c.cache.synced() {
			c.refresh(ctx)
			c.copies.collect(ctx)
			c.tellNode()
		}
	}
}

// ready waits until the remote cluster was listed once.
func (c *Cluster) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if cache.WaitForCacheSync(ctx.Done(), c.cache.synced) {
		return nil
	}
	return fmt.Errorf("the remote cluster was not listed yet: %w", errors.Join(ctx.Err(), c.cache.trouble()))
}

// homeLabels are the labels of everything that is the node's, and those given.
func (c *Cluster) homeLabels(more map[string]string) map[string]string {
	l := c.config.Home.Labels()
	maps.Copy(l, more)
	return l
}
