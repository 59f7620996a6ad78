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

// Config describes the node and the home that use the remote cluster, and how they use it.
type Config struct {
	Home Home
	// REST is the access to the remote cluster, with the limits of its requests.
	REST *rest.Config
	// Namespace is the remote namespace of all pods. With "", each namespace of home has its own, which is made
	// on demand.
	Namespace string
	// Namespaces are existing remote namespaces, by the namespace at home. They take precedence; with Namespace
	// there are none.
	Namespaces map[string]string
	// NamespaceOf returns the remote namespace for a namespace at home, where others make them. If there is
	// none, the error is of the kind not-found. Nil: Namespace and Namespaces decide.
	NamespaceOf func(home string) (string, error)
	// Labels are more labels of remote pods.
	Labels map[string]string
	// ServiceAccount is the service account of remote pods, or "" for the namespace's default.
	ServiceAccount string
	// Place returns where a pod may run. Nil: anywhere.
	Place func(*corev1.Pod) (Placement, error)
	// Owner is the kind of object that is made instead of pods. Nil stands for pods.
	Owner *OwnerKind
	// Annotations reports which annotations of pods the remote cluster gets. Nil means none.
	Annotations func(key string) bool
	// StorageClasses are the remote storage classes, by the class at home. Pods with claims of other classes are
	// refused.
	StorageClasses map[string]string
	// Global reports which services exist in the remote cluster, too. Nil means none. It does not work with one
	// Namespace for all.
	Global func(*corev1.Service) bool
	// Adjust changes the remote pod of a pod at home, after it was translated: the same each time it is called. Nil: nothing is changed.
	Adjust func(home, remote *corev1.Pod) error
	// Answers checks whether the remote cluster answers and accepts pods. Nil: a request to /readyz.
	Answers func(context.Context) error
	// Capacity is the capacity of the node. Nil stands for the free resources of the remote cluster's Ready
	// nodes.
	Capacity corev1.ResourceList
	// Pods and Services list the pods and Services at home.
	Pods     corev1listers.PodLister
	Services corev1listers.ServiceLister
	// Listed reports whether these listers have all objects of home. Nil means yes.
	Listed func() bool
	// Claim reserves the name for this home cluster: a second home cluster with the name is refused.
	Claim bool
	// Recorder records events about pods at home. Nil: events of the remote cluster do not appear at home.
	Recorder record.EventRecorder
	// RefreshEvery is the interval at which copies are compared with their originals. 0 is 15 seconds.
	RefreshEvery time.Duration
}

// Cluster is the remote cluster for one node. It has the methods of a provider.
type Cluster struct {
	config  Config
	client  kubernetes.Interface
	streams *rest.Config // of sessions
	cache   *remoteCache
	owners  *owners       // nil: the node makes pods themselves
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
	made       map[types.UID]madePod                // guarded by mu; new pods that the watch has not shown yet
	perhaps    map[types.UID]madePod                // guarded by mu; pods whose create had no answer
	late       map[types.UID]bool                   // guarded by mu; the missing pod of an owner object was reported
	stopping   map[types.UID]bool                   // guarded by mu; home asked for the stop
	removed    map[types.UID]bool                   // guarded by mu; another client asked for the stop
	told       map[types.UID]bool                   // guarded by mu; the node got a report of the pod
	tracked    map[types.UID]types.NamespacedName   // guarded by mu; the home names of pods whose copies are kept up to date
	needs      map[types.UID]need                   // guarded by mu; of the tracked pods
	born       map[types.UID]bool                   // guarded by mu; this process has made the pod, or requested it
	homeSlices discoverylisters.EndpointSliceLister // guarded by mu; nil: home was not listed yet
	notLoop    bool                                 // guarded by mu; the remote cluster differs from home for certain
	notifyNode func(*corev1.Node)                   // guarded by mu; nil before NotifyNodeStatus
	node       *corev1.Node                         // guarded by mu; the configured node
	base       *corev1.Node                         // guarded by mu; the last reported node
}

// writer makes and removes the pods of the node in the remote cluster, or their owner objects.
type writer interface {
	create(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error)
	get(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	remove(ctx context.Context, there *corev1.Pod, grace int64) error
}

// madePod is a pod as the create answered.
type madePod struct {
	pod *corev1.Pod
	at  time.Time
}

// New returns the remote cluster of a node. It asks for nothing before RunInBackground.
func New(c Config) (*Cluster, error) {
	access, seen := rest.CopyConfig(c.REST), &outages{}
	if access.ContentType == "" { // JSON would cost more than everything else for a pod
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

// UsePodObjects sets the reader of ConfigMaps and Secrets at home.
func (c *Cluster) UsePodObjects(o node.PodObjects) { c.objects = o }

// UsePodTokens sets the source of tokens of home.
func (c *Cluster) UsePodTokens(t node.PodTokens) { c.tokens = t }

// NotifyPods sets the function that gets every change of a pod.
func (c *Cluster) NotifyPods(_ context.Context, notify func(*corev1.Pod)) { c.notify = notify }

// RunInBackground watches the remote cluster and keeps copies and tokens up to date, until ctx ends. Nothing
// begins before home was listed: only the pods at home show whether home asked for the end of a remote pod, and
// which copies are needed.
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
				c.copies.checkAll() // the node has room now
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

// keepUp removes objects that no pod needs. With everything it also updates the objects that do not belong to
// single pods.
func (c *Cluster) keepUp(ctx context.Context, everything bool) {
	c.copies.collectUnneeded(ctx, everything)
	if !everything {
		return
	}
	if c.globals != nil {
		bounded, cancel := context.WithTimeout(ctx, globalsTimeout) // tokens are replaced by this loop too
		c.globals.syncServices(bounded)
		cancel()
	}
	if c.owners != nil {
		c.owners.sweepLost(ctx, c.runs.keepsObject)
	}
	c.tellNode()
}

// recheckWritten requests another look at objects that are written once: a remote cluster from a backup may lack them.
func (c *Cluster) recheckWritten() {
	c.claim.doubted.Store(true)
	c.namespaces.forgetAll()
	c.copies.checkAll() // looks at the claim
}

// awaitReady waits for the first list of the remote cluster, and until its objects are known to belong to this home.
func (c *Cluster) awaitReady(ctx context.Context) error {
	if err := c.awaitList(ctx); err != nil {
		return err
	}
	return c.claim.checkClaim(ctx, true)
}

// awaitList waits for the first list of the remote cluster, or for its refusal: a caller without a right learns
// which right it lacks, instead of a timeout.
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

// homeLabels returns the labels of every object of the node, and more.
func (c *Cluster) homeLabels(more map[string]string) map[string]string {
	l := c.config.Home.Labels()
	maps.Copy(l, more)
	return l
}

// homePod returns a pod at home, or nil if there is none.
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

// shownWithin is the time for the watch to show a created pod, before a request asks for it.
const shownWithin = 10 * time.Second

// serviceOfAPI is the Service of the API server, in the namespace default. Its UID distinguishes clusters.
const serviceOfAPI = "kubernetes"
