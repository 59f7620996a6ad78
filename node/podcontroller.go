// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/admission"
	"github.com/virtual-kubelet/virtual-kubelet/internal/keyqueue"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lease"
	"github.com/virtual-kubelet/virtual-kubelet/internal/nilcheck"
	"github.com/virtual-kubelet/virtual-kubelet/internal/objects"
	"github.com/virtual-kubelet/virtual-kubelet/internal/podenv"
	"github.com/virtual-kubelet/virtual-kubelet/internal/podsecrets"
	"github.com/virtual-kubelet/virtual-kubelet/internal/providercall"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	defaultProviderCallTimeout = 10 * time.Minute
	defaultPollInterval        = 5 * time.Second
	// defaultVisibility and defaultQuarantine are PodVisibilityTimeout and MissingPodsQuarantine.
	defaultVisibility = 30 * time.Second
	defaultQuarantine = 5 * time.Minute
	// slowCall is after how long a read of what a pod names lets another pod have
	// its worker. For provider calls, providercall.Patience decides.
	slowCall = 10 * time.Second
	// statusWriters is how many writes of pods may be under way at least. They wait
	// for the API server, not for a processor; the client's limiter bounds their rate.
	statusWriters = 32
	// readTimeout ends the context of a provider call that only asks.
	readTimeout = time.Minute
)

// PodController keeps the pods of the backend and of the API server in step.
// The package documentation has its guarantees. Make one with NewPodController.
type PodController struct {
	provider   PodLifecycleHandler
	notifies   bool
	authority  PodAuthority        // nil: nobody says whether the provider's answers are complete
	starts     bool                // it starts containers one by one: a PodObjectsUser
	changes    providercall.Caller // for calls that change something
	reads      providercall.Caller // for calls that only ask
	client     corev1client.PodsGetter
	pods       corev1listers.PodLister
	informer   cache.SharedIndexInformer
	wanted     PodEventFilterFunc
	recorder   record.EventRecorder
	nodeName   string
	os         string // of the node; "": unknown
	pollPeriod time.Duration
	addresses  func() []corev1.NodeAddress // of the node; nil: unknown

	declared        *capability.Declaration // nil: the provider declares nothing and gets every pod
	failUnsupported bool
	admission       admission.Allocations

	skipEnv      bool
	env          podenv.Config
	secrets      *podsecrets.Manager
	bundles      podTrustBundles
	certificates podCertificates
	claims       podClaims
	store        *objects.Store         // nil: the caller's own informers
	synced       []cache.InformerSynced // of the caller's own informers

	syncLane   *keyqueue.Queue
	statusLane *keyqueue.Queue
	pollLane   *keyqueue.Queue // asks for what a PodNotifier has not told, and others do not tell
	states     podStates
	earlier    earlierPods
	orphans    *quarantine // of the pods that only the backend has
	lost       *quarantine // of the pods that the backend should have
	visibility time.Duration
	gauges     podGauges
	wall       func() time.Time // the clock on the wall, which may be set
	polled     chan struct{}    // holds a token when a poll is wanted soon
	outage     chan struct{}    // holds a token when the API server did not answer

	setNodeCondition func(corev1.NodeCondition) // nil: nobody is told
	missingMu        sync.Mutex
	missingTold      string // guarded by missingMu; what was said last of pods in quarantine

	draining     atomic.Bool   // the node shuts down: no pod is started any more
	relistWanted chan struct{} // holds a token when a relist is wanted at once

	fence    *lease.Fence // nil: there is no lease guard; set before Run
	behind   podGaps
	deferred deferredKeys

	ready, done chan struct{}
	mu          sync.Mutex
	started     bool  // guarded by mu
	err         error // guarded by mu
}

// NewPodController checks the configuration and returns a controller. It has no
// side effects but that it takes the informers from their factory, whose Start
// then starts them. A missing field is an error of the kind invalid-input.
func NewPodController(cfg PodControllerConfig) (*PodController, error) {
	for _, required := range []struct {
		name  string
		value any
	}{
		{"core client", cfg.PodClient},
		{"event recorder", cfg.EventRecorder},
		{"pod informer", cfg.PodInformer},
		{"config map informer", cfg.ConfigMapInformer},
		{"secret informer", cfg.SecretInformer},
		{"service informer", cfg.ServiceInformer},
		{"provider", cfg.Provider},
	} {
		if nilcheck.Is(required.value) {
			return nil, errdefs.InvalidInput("missing " + required.name)
		}
	}
	if cfg.PodEventFilterFunc == nil {
		cfg.PodEventFilterFunc = func(context.Context, *corev1.Pod) bool { return true }
	}
	if cfg.PollInterval <= 0 {
		cfg.PollInterval = defaultPollInterval
	}
	if cfg.PodVisibilityTimeout <= 0 {
		cfg.PodVisibilityTimeout = defaultVisibility
	}
	if cfg.MissingPodsQuarantine <= 0 {
		cfg.MissingPodsQuarantine = defaultQuarantine
	}
	if cfg.ProviderCallTimeout <= 0 {
		cfg.ProviderCallTimeout = defaultProviderCallTimeout
	}
	_, notifies := cfg.Provider.(PodNotifier)
	_, starts := cfg.Provider.(PodObjectsUser)
	authority, _ := cfg.Provider.(PodAuthority)
	patience := &providercall.Patience{}
	gauges := newPodGauges()
	c := &PodController{
		provider:     cfg.Provider,
		notifies:     notifies,
		authority:    authority,
		starts:       starts,
		changes:      providercall.Caller{Deadline: cfg.ProviderCallTimeout, Patience: patience, Slow: keyqueue.Yield},
		reads:        providercall.Caller{Deadline: min(cfg.ProviderCallTimeout, readTimeout), Patience: patience, Slow: keyqueue.Yield},
		client:       cfg.PodClient,
		pods:         cfg.PodInformer.Lister(),
		informer:     cfg.PodInformer.Informer(),
		wanted:       cfg.PodEventFilterFunc,
		recorder:     cfg.EventRecorder,
		nodeName:     cfg.NodeName,
		os:           cfg.OperatingSystem,
		pollPeriod:   cfg.PollInterval,
		addresses:    cfg.NodeAddresses,
		skipEnv:      cfg.SkipDownwardAPIResolution,
		wall:         time.Now,
		states:       podStates{m: map[string]*podState{}},
		gauges:       gauges,
		visibility:   cfg.PodVisibilityTimeout,
		polled:       make(chan struct{}, 1),
		outage:       make(chan struct{}, 1),
		relistWanted: make(chan struct{}, 1),
		ready:        make(chan struct{}),
		done:         make(chan struct{}),
	}
	c.useQuarantines(&cfg)
	c.declare(cfg.FailUnsupported)
	c.useObjects(&cfg)
	c.useSecrets(&cfg)
	c.useCertificates(&cfg)
	c.useClaims(&cfg)
	c.syncLane = keyqueue.New(
		&retryPolicy{limiter: cfg.SyncPodsFromKubernetesRateLimiter, should: cfg.SyncPodsFromKubernetesShouldRetryFunc, failed: c.syncFailed})
	c.statusLane = keyqueue.New(
		&retryPolicy{limiter: cfg.SyncPodStatusFromProviderRateLimiter, should: cfg.SyncPodStatusFromProviderShouldRetryFunc, failed: c.writeFailed},
		&retryPolicy{limiter: cfg.DeletePodsFromKubernetesRateLimiter, should: cfg.DeletePodsFromKubernetesShouldRetryFunc, failed: c.writeFailed})
	poll := &retryPolicy{failed: c.pollFailed}
	if !notifies {
		poll.should = pollAgain
	}
	c.pollLane = keyqueue.New(poll)
	if c.store != nil {
		c.store.OnChange(c.objectChanged)
	}
	return c, nil
}

// Run handles pods until ctx ends, with up to podSyncWorkers provider calls at a
// time and as many writes to the API server, but at least 32. It returns nil when ctx ended, and
// an error when the informers' caches did not fill before that, when the
// number of workers is below one, when one of the methods panics that offer the provider
// something, when its work in the background ends before that, or at a second call.
func (c *PodController) Run(ctx context.Context, podSyncWorkers int) (err error) {
	if podSyncWorkers < 1 {
		return errdefs.InvalidInputf("pod sync workers: got %d, want at least 1", podSyncWorkers)
	}
	if !c.begin() {
		return errors.New("run pod controller: it was run before; make a new one")
	}
	defer func() {
		c.mu.Lock()
		c.err = err
		c.mu.Unlock()
		close(c.done)
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer c.gauges.end()
	defer wg.Wait()
	defer cancel(nil)

	if err := errors.Join(c.offerTokens(ctx), c.offerPullCredentials(ctx), c.offerTrustBundles(ctx), c.offerCertificates(ctx),
		c.offerClaims(ctx), c.offerObjects(ctx)); err != nil {
		return fmt.Errorf("run pod controller: %w", err)
	}
	if n, ok := c.provider.(PodNotifier); ok {
		err := (&providercall.Caller{}).Do(ctx, "NotifyPods", func(ctx context.Context) error {
			n.NotifyPods(ctx, func(pod *corev1.Pod) { c.report(ctx, pod) })
			return nil
		})
		if err != nil {
			return fmt.Errorf("run pod controller: %w", err)
		}
	}
	wg.Go(func() { c.background(ctx, cancel) })
	registration, err := c.informer.AddEventHandler(c.handler(ctx))
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	defer func() { _ = c.informer.RemoveEventHandler(registration) }()
	if !cache.WaitForCacheSync(ctx.Done(), append(c.synced, registration.HasSynced)...) {
		if broken := ended(ctx); broken != nil {
			return broken
		}
		return errors.New("failed to wait for caches to sync")
	}
	c.noteEarlier(ctx)
	wg.Go(func() { c.syncLane.Run(ctx, podSyncWorkers, c.fenced(c.syncLane, c.syncPod)) })
	wg.Go(func() {
		c.statusLane.Run(ctx, max(podSyncWorkers, statusWriters), c.fenced(c.statusLane, c.writePodStatus))
	})
	if c.fence != nil {
		wg.Go(func() { c.terms(ctx) })
	}
	wg.Go(func() { c.pollLane.Run(ctx, pollers, c.pollPod) })
	wg.Go(func() { c.relist(ctx) })
	wg.Go(func() { c.probeAPIServer(ctx) })
	log.G(ctx).Debug("pod controller is running")
	close(c.ready)
	<-ctx.Done()
	return ended(ctx)
}

// ended returns why ctx ended, nil if it ended because its parent did.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("run pod controller: %w", cause)
	}
	return nil
}

func (c *PodController) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.started
	c.started = true
	return first
}

// begun reports whether Run was called.
func (c *PodController) begun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.started
}

// Ready is closed when the controller handles pods.
func (c *PodController) Ready() <-chan struct{} { return c.ready }

// Done is closed when Run has returned.
func (c *PodController) Done() <-chan struct{} { return c.done }

// Err returns the error that Run returned, nil before that.
func (c *PodController) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Kick lets all work that waits for a retry begin at once, for use when the
// backend or the API server is known to be healthy again.
func (c *PodController) Kick() {
	c.syncLane.Kick()
	c.statusLane.Kick()
	c.pollLane.Kick()
}
