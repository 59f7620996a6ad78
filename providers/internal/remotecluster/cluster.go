// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	corev1listers "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

const (
	// refreshEvery is the interval at which copies are compared with their originals.
	refreshEvery = 15 * time.Second
	// listedEvery is the interval of checks while a caller waits for the first list of the remote cluster.
	listedEvery = 100 * time.Millisecond
)

// Config configures how a node of the home cluster uses the remote cluster.
type Config struct {
	Home Home
	// REST is the client configuration for the remote cluster, including rate limits.
	REST *rest.Config
	// Namespace is the remote namespace of all pods. If it is empty, each home namespace has its own remote
	// namespace, which is created on demand.
	Namespace string
	// Namespaces maps home namespaces to existing remote namespaces. They take precedence over created ones. It
	// must be empty if Namespace is set.
	Namespaces map[string]string
	// NamespaceOf returns the remote namespace for a home namespace, if other components create them. The error
	// is errdefs.ErrNotFound if there is none. If it is nil, Namespace and Namespaces are used.
	NamespaceOf func(home string) (string, error)
	// Labels are additional labels of remote pods.
	Labels map[string]string
	// ServiceAccount is the service account of remote pods, or "" for the namespace's default.
	ServiceAccount string
	// Place returns the placement of a pod. Nil means no restriction.
	Place func(*corev1.Pod) (Placement, error)
	// Owner is the kind of object that is created instead of pods. Nil means that pods are created.
	Owner *OwnerKind
	// Annotations reports whether an annotation is copied to remote pods. Nil means none.
	Annotations func(key string) bool
	// StorageClasses maps home storage classes to remote ones. Pods with claims of other classes are refused.
	StorageClasses map[string]string
	// Global reports whether a Service is copied to the remote cluster. Nil means none. It cannot be combined
	// with Namespace.
	Global func(*corev1.Service) bool
	// Adjust changes the translated remote pod. It must be deterministic. It may be nil.
	Adjust func(home, remote *corev1.Pod) error
	// Answers checks whether the remote cluster answers and accepts pods. If it is nil, /readyz is requested.
	Answers func(context.Context) error
	// Capacity is the capacity of the node. If it is nil, the capacity is the free resources of the remote
	// cluster's Ready nodes.
	Capacity corev1.ResourceList
	// Pods and Services list the pods and Services of the home cluster.
	Pods     corev1listers.PodLister
	Services corev1listers.ServiceLister
	// Listed reports whether these listers have synced. Nil means yes.
	Listed func() bool
	// Claim reserves the cluster name for this home cluster, so that a second home cluster with the same name is
	// refused.
	Claim bool
	// Recorder records events of remote pods in the home cluster. If it is nil, they are not copied.
	Recorder record.EventRecorder
	// RefreshEvery is the interval at which copies are compared with their originals. 0 means 15 seconds.
	RefreshEvery time.Duration
}

// Cluster is the remote cluster of one node. It implements the methods of a provider.
type Cluster struct {
	config  Config
	client  kubernetes.Interface
	streams *rest.Config // for exec, attach and port-forward
	cache   *remoteCache
	owners  *owners       // nil: the node creates pods
	writer  writer        // of the pods of the node
	nodes   *nodeWatch    // nil: the capacity is configured
	events  *remoteEvents // nil: events are not copied
	globals *globals      // nil: services stay at home

	// Set before RunInBackground, constant afterwards.
	notify  func(*corev1.Pod)
	objects node.PodObjects
	tokens  node.PodTokens
	volumes node.PodClaims

	namespaces namespaces
	copies     copies
	claim      claim
	runs       runs

	mu         sync.Mutex
	made       map[types.UID]madePod                // guarded by mu; created pods that are not in the watch cache yet
	perhaps    map[types.UID]madePod                // guarded by mu; pods whose create request had no response
	late       map[types.UID]bool                   // guarded by mu; a missing pod was reported
	stopping   map[types.UID]bool                   // guarded by mu; the home cluster requested the deletion
	removed    map[types.UID]bool                   // guarded by mu; another client requested the deletion
	told       map[types.UID]bool                   // guarded by mu; the node got a report of the pod
	tracked    map[types.UID]types.NamespacedName   // guarded by mu; the home names of pods whose copies are kept up to date
	needs      map[types.UID]need                   // guarded by mu; the needs of the tracked pods
	born       map[types.UID]bool                   // guarded by mu; this process has created the pod, or may have
	homeSlices discoverylisters.EndpointSliceLister // guarded by mu; nil: not set yet
	notLoop    bool                                 // guarded by mu; the remote cluster is known not to be the home cluster
	notifyNode func(*corev1.Node)                   // guarded by mu; nil before NotifyNodeStatus
	node       *corev1.Node                         // guarded by mu; the configured node
	base       *corev1.Node                         // guarded by mu; the last reported node
}

// writer creates and deletes the remote pods of the node, or their owner objects.
type writer interface {
	create(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error)
	get(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	remove(ctx context.Context, there *corev1.Pod, grace int64) error
}

// madePod is a pod from the response to its create request.
type madePod struct {
	pod *corev1.Pod
	at  time.Time
}

// New returns the remote cluster of a node. It sends no requests before RunInBackground.
func New(c Config) (*Cluster, error) {
	access, seen := rest.CopyConfig(c.REST), &outages{}
	if access.ContentType == "" { // encoding JSON would be the largest cost of a pod
		access.ContentType, access.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	}
	access.Wrap(func(next http.RoundTripper) http.RoundTripper { return notOlder{plainWatches{next}, seen} })
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("make the client of the remote cluster: %w", err)
	}
	if c.Listed == nil {
		c.Listed = func() bool { return true }
	}
	if c.RefreshEvery == 0 {
		c.RefreshEvery = refreshEvery
	}
	cl := &Cluster{
		config: c, client: client, streams: rest.CopyConfig(c.REST),
		made: map[types.UID]madePod{}, perhaps: map[types.UID]madePod{}, late: map[types.UID]bool{}, stopping: map[types.UID]bool{}, removed: map[types.UID]bool{}, told: map[types.UID]bool{}, tracked: map[types.UID]types.NamespacedName{},
		needs: map[types.UID]need{}, born: map[types.UID]bool{},
	}
	if c.Owner != nil {
		access := rest.CopyConfig(access)
		if access.QPS > 0 && access.RateLimiter == nil {
			access.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(access.QPS, access.Burst) // of both clients
		}
		objects, err := dynamic.NewForConfig(access)
		if err != nil {
			return nil, fmt.Errorf("make the client of the remote cluster: %w", err)
		}
		typed, err := newTypedOwners(access, *c.Owner)
		if err != nil {
			return nil, err
		}
		cl.owners = &owners{kind: *c.Owner, client: objects, typed: typed}
	}
	cl.cache = newCache(client, c.Home, c.Namespace, cl.owners)
	if cl.writer = cl.cache; cl.owners != nil {
		cl.writer = cl.owners
	}
	seen.restored = cl.recheckWritten
	cl.copies.init(cl)
	cl.namespaces.of, cl.claim.of, cl.runs.of = cl, cl, cl
	if c.Capacity == nil {
		cl.nodes = newNodeWatch(client, c.Home)
	}
	if c.Recorder != nil {
		cl.events = newEvents(cl)
	}
	if c.Global != nil {
		cl.globals = newGlobals(client, cl)
	}
	if err := cl.watchPods(); err != nil {
		return nil, err
	}
	return cl, nil
}

// UsePodObjects sets the reader of ConfigMaps and Secrets of the home cluster.
func (c *Cluster) UsePodObjects(o node.PodObjects) { c.objects = o }

// UsePodTokens sets the source of tokens of the home cluster.
func (c *Cluster) UsePodTokens(t node.PodTokens) { c.tokens = t }

// NotifyPods sets the function that gets every change of a pod.
func (c *Cluster) NotifyPods(_ context.Context, notify func(*corev1.Pod)) { c.notify = notify }

// RunInBackground watches the remote cluster and keeps copies and tokens up to date, until ctx ends. It waits for
// the listers of the home cluster first, because the home pods determine which remote pods were deleted there,
// and which copies are needed.
func (c *Cluster) RunInBackground(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), c.config.Listed) {
		return nil
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { c.cache.run(ctx) })
	if c.nodes != nil {
		wg.Go(func() { c.nodes.run(ctx) })
		wg.Go(func() {
			if cache.WaitForCacheSync(ctx.Done(), c.cache.hasSynced, c.nodes.hasSynced) {
				c.copies.checkAll() // report the capacity
			}
		})
	}
	if c.events != nil {
		wg.Go(func() {
			if cache.WaitForCacheSync(ctx.Done(), c.cache.hasSynced) {
				c.events.watchEvents(ctx)
			}
		})
	}
	if c.globals != nil {
		wg.Go(func() { c.globals.run(ctx) })
	}
	ticker := time.NewTicker(c.config.RefreshEvery)
	defer ticker.Stop()
	for {
		due := false
		select {
		case <-ticker.C:
			due = true
		case <-c.copies.wake:
		case <-ctx.Done():
			return nil
		}
		if !c.cache.hasSynced() || c.claim.checkClaim(ctx, true) != nil { // Ping reports the problem
			continue
		}
		if due {
			c.lookForMade(ctx)
			c.refreshNeeds(ctx)
			c.tellLate()
		}
		c.keepUp(ctx, c.copies.everything.Swap(false) || due)
	}
}

// keepUp removes objects that no pod needs. With everything it also updates the objects that do not belong to a
// single pod.
func (c *Cluster) keepUp(ctx context.Context, everything bool) {
	c.copies.collectUnneeded(ctx, everything)
	if !everything {
		return
	}
	if c.globals != nil {
		bounded, cancel := context.WithTimeout(ctx, globalsTimeout) // this loop also has to renew tokens
		c.globals.syncServices(bounded)
		cancel()
	}
	if c.owners != nil {
		c.owners.sweepLost(ctx, c.runs.keepsObject)
	}
	c.tellNode()
}

// recheckWritten requests a check of objects that are created only once: a remote cluster that was restored from
// a backup may lack them.
func (c *Cluster) recheckWritten() {
	c.claim.doubted.Store(true)
	c.namespaces.forgetAll()
	c.copies.checkAll() // also checks the claim
}

// awaitReady waits for the first list of the remote cluster, and checks that its objects belong to this home
// cluster.
func (c *Cluster) awaitReady(ctx context.Context) error {
	if err := c.awaitList(ctx); err != nil {
		return err
	}
	return c.claim.checkClaim(ctx, true)
}

// awaitList waits for the first list of the remote cluster. If the list is forbidden, it returns that error at
// once instead of a timeout.
func (c *Cluster) awaitList(ctx context.Context) error {
	if c.cache.hasSynced() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, listedEvery, true, func(context.Context) (bool, error) { return c.cache.hasSynced(), c.cache.listRefusal() })
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil:
		return fmt.Errorf("the remote cluster was not listed yet: %w", err)
	case !c.config.Listed():
		return fmt.Errorf("the pods and services of the home cluster were not listed yet: %w", ctx.Err())
	}
	return fmt.Errorf("the remote cluster was not listed yet: %w", errors.Join(ctx.Err(), c.cache.unlistedError()))
}

// homeLabels returns the labels of every object of the node, plus the given ones.
func (c *Cluster) homeLabels(more map[string]string) map[string]string {
	l := c.config.Home.Labels()
	maps.Copy(l, more)
	return l
}

// homePod returns a pod of the home cluster, or nil if there is none.
func (c *Cluster) homePod(namespace, name string) *corev1.Pod {
	pod, err := c.config.Pods.Pods(namespace).Get(name)
	if err != nil {
		return nil
	}
	return pod
}

// homeUID returns the UID of the home cluster, which is the UID of its Service kubernetes.
func (c *Cluster) homeUID() (types.UID, bool) {
	if c.config.Services == nil {
		return "", false
	}
	service, err := c.config.Services.Services(metav1.NamespaceDefault).Get(serviceOfAPI)
	if err != nil {
		return "", false
	}
	return service.UID, true
}

// shownWithin is the time after which a created pod that is missing in the watch cache is requested.
const shownWithin = 10 * time.Second

// serviceOfAPI is the Service of the API server in the namespace default. Its UID identifies a cluster.
const serviceOfAPI = "kubernetes"
