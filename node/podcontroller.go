// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/keyqueue"
	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
	"github.com/virtual-kubelet/virtual-kubelet/internal/nilcheck"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	defaultProviderCallTimeout = 10 * time.Minute
	defaultPollInterval        = 5 * time.Second
	// defaultVisibility and defaultQuarantine are the defaults of PodVisibilityTimeout and
	// MissingPodsQuarantine.
	defaultVisibility = 30 * time.Second
	defaultQuarantine = 5 * time.Minute
	// statusWriters is the minimum number of concurrent pod writes. Writers wait for the API server, not for a CPU; the client's limiter
	// bounds their rate.
	statusWriters = 32
)

// PodController reconciles the pods of the backend and of the API server. The package documentation describes its guarantees. Create one
// with NewPodController.
type PodController struct {
	*podCore
	informer cache.SharedIndexInformer
	backend  *backend
	inputs   *podInputs

	events   podEvents
	reports  *podReports
	worker   *podWorker
	statuses *statusManager
	poller   *poller
	relister *relister
	terms    *leaseTerms
	outage   *apiOutage

	ready chan struct{}
	run   oneRun
}

// NewPodController checks the configuration and returns a controller. It has one side effect: it requests the informers from their factory,
// whose Start then starts them. For a missing field it returns an error of the kind invalid-input.
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
	hostIPs := func() []corev1.HostIP { return nil }
	if addresses := cfg.NodeAddresses; addresses != nil {
		hostIPs = func() []corev1.HostIP { return hostIPsOf(addresses()) }
	}
	inputs := newPodInputs(&cfg, hostIPs)
	core := &podCore{
		podCache: podCache{client: cfg.PodClient, pods: cfg.PodInformer.Lister(), wanted: cfg.PodEventFilterFunc, nodeName: cfg.NodeName},
		lanes:    lanes{polled: make(chan struct{}, 1), relistWanted: make(chan struct{}, 1)},
		states:   podStates{m: map[string]*podState{}},
		given:    givenUIDs{of: map[string]givenPod{}},
		secrets:  inputs.secrets,
		recorder: cfg.EventRecorder,
	}
	c := &PodController{
		podCore:  core,
		informer: cfg.PodInformer.Informer(),
		backend:  newBackend(&cfg, core),
		inputs:   inputs,
		events:   podEvents{core},
		outage:   &apiOutage{podCore: core, noted: make(chan struct{}, 1)},
		ready:    make(chan struct{}),
		run:      oneRun{done: make(chan struct{})},
	}
	missing := newQuarantines(core, &cfg)
	admission := newPodAdmission(core, &cfg)
	deadlines := &activeDeadlines{podCore: core, wall: time.Now}
	tracker := &podTracker{podCore: core, quarantines: missing, inputs: inputs, admission: admission}
	c.reports = &podReports{podCore: core, tracker: tracker}
	c.worker = &podWorker{
		podCore: core, quarantines: missing, backend: c.backend, inputs: inputs, skipEnv: cfg.SkipDownwardAPIResolution,
		admission: admission, failUnsupported: cfg.FailUnsupported && admission.declared != nil,
		tracker: tracker, reports: c.reports, deadlines: deadlines, os: cfg.OperatingSystem,
	}
	c.statuses = &statusManager{podCore: core, admission: admission, outage: c.outage, hostIPs: hostIPs}
	c.poller = &poller{podCore: core, backend: c.backend, reports: c.reports}
	c.relister = &relister{comparer: comparer{
		podCore: core, quarantines: missing, backend: c.backend, reports: c.reports, pollInterval: cfg.PollInterval,
	}}
	c.terms = &leaseTerms{podCore: core, tracker: tracker, quarantines: missing, deadlines: deadlines}
	c.makeLanes(&cfg)
	return c, nil
}

// makeLanes creates the lanes, each with its policy for failed work.
func (c *PodController) makeLanes(cfg *PodControllerConfig) {
	c.syncLane = keyqueue.New(
		&retryPolicy{limiter: cfg.SyncPodsFromKubernetesRateLimiter, should: cfg.SyncPodsFromKubernetesShouldRetryFunc, failed: c.worker.syncFailed,
			until: c.terms.deadlines.untilDeadline})
	c.statusLane = keyqueue.New(
		&retryPolicy{limiter: cfg.SyncPodStatusFromProviderRateLimiter, should: cfg.SyncPodStatusFromProviderShouldRetryFunc, failed: c.statuses.writeFailed},
		&retryPolicy{limiter: cfg.DeletePodsFromKubernetesRateLimiter, should: cfg.DeletePodsFromKubernetesShouldRetryFunc, failed: c.statuses.writeFailed}).Shared()
	poll := &retryPolicy{failed: pollFailed}
	if !c.backend.notifies {
		poll.should = pollAgain
	}
	c.pollLane = keyqueue.New(poll)
}

// Run handles pods until ctx ends. It makes up to podSyncWorkers concurrent provider calls and as many concurrent writes to the API server,
// but allows at least 32 writes. It returns nil after ctx ended. It returns an error if the informers' caches did not fill before ctx
// ended, if the number of workers is below one, if a Use… or Notify… method of the provider panics, if the provider's background work ends
// before ctx, or if it was called before.
func (c *PodController) Run(ctx context.Context, podSyncWorkers int) (err error) {
	if podSyncWorkers < 1 {
		return errdefs.InvalidInputf("pod sync workers: got %d, want at least 1", podSyncWorkers)
	}
	if !c.run.start() {
		return errors.New("run pod controller: it was run before; make a new one")
	}
	defer func() { c.run.end(err) }()
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	var lanes []func() // each function waits for the end of the work in a lane
	defer c.trackGauges(ctx)()
	defer c.inputs.followObjects(c.events.objectChanged, &c.states)()
	defer func() {
		for _, wait := range lanes {
			wait()
		}
		wg.Wait()
	}()
	defer cancel(nil)

	if err := c.inputs.offerInputs(ctx, c.backend.provider); err != nil {
		return fmt.Errorf("run pod controller: %w", err)
	}
	if err := c.backend.takeReports(ctx, c.reports.report); err != nil {
		return fmt.Errorf("run pod controller: %w", err)
	}
	wg.Go(func() { c.backend.runInBackground(ctx, cancel) })
	registration, err := c.informer.AddEventHandler(c.events.eventHandler(ctx))
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	defer func() { _ = c.informer.RemoveEventHandler(registration) }()
	if !cache.WaitForCacheSync(ctx.Done(), append(c.inputs.synced, registration.HasSynced)...) {
		if broken := whyEnded(ctx); broken != nil {
			return broken
		}
		return errors.New("failed to wait for caches to sync")
	}
	c.terms.beginActing(ctx)
	c.reports.beginReports(ctx)
	lanes = []func(){
		c.syncLane.Start(ctx, podSyncWorkers, c.terms.fencedWork(c.syncLane, c.worker.syncPod)),
		c.statusLane.Start(ctx, max(podSyncWorkers, statusWriters), c.terms.fencedWork(c.statusLane, c.statuses.writePodStatus)),
		c.pollLane.Start(ctx, pollers, c.poller.pollPod),
	}
	wg.Go(func() { c.relister.run(ctx) })
	log.G(ctx).Debug("pod controller is running")
	close(c.ready)
	c.attendTerms(ctx, &wg)
	return whyEnded(ctx)
}

// attendTerms begins terms and ends outages until ctx ends, each in its own goroutine.
func (c *PodController) attendTerms(ctx context.Context, wg *sync.WaitGroup) {
	changed, noted := c.fence.Changes(), c.outage.noted
	begun, over := make(chan struct{}, 1), make(chan struct{}, 1)
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			changed = nil // one at a time
			wg.Go(func() {
				c.terms.beginTerms(ctx)
				leaveToken(begun)
			})
		case <-begun:
			changed = c.fence.Changes()
		case <-noted:
			noted = nil
			wg.Go(func() {
				c.outage.endOutage(ctx)
				leaveToken(over)
			})
		case <-over:
			noted = c.outage.noted
		}
	}
}

// whyEnded returns the cause of the end of ctx, or nil if its parent ended.
func whyEnded(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("run pod controller: %w", cause)
	}
	return nil
}

// wasBegun reports whether Run was called.
func (c *PodController) wasBegun() bool { return c.run.wasBegun() }

// Ready returns a channel that is closed when the controller handles pods.
func (c *PodController) Ready() <-chan struct{} { return c.ready }

// Done returns a channel that is closed when Run has returned.
func (c *PodController) Done() <-chan struct{} { return c.run.done }

// Err returns the error of Run, or nil while Run has not returned.
func (c *PodController) Err() error { return c.run.runError() }

// Kick starts all work that waits for a retry at once. Call it when the backend or the API server is healthy again.
func (c *PodController) Kick() { c.kickAll() }

// PodForProvider returns a pod as the provider receives it in calls: without the features that the provider or AcceptUnenforced allows to
// leave out. It returns the pod itself if nothing is left out, else a copy.
func (c *PodController) PodForProvider(pod *corev1.Pod) *corev1.Pod {
	return c.worker.admission.forProvider(pod)
}

// trackGauges exports the pod counts of the controller as metrics until the returned function is called.
func (c *PodController) trackGauges(ctx context.Context) (untrack func()) {
	count := func(is func(*corev1.Pod) bool) func() float64 {
		return func() (n float64) {
			for _, pod := range c.all(ctx) {
				n += metrics.Bool(is(pod))
			}
			return n
		}
	}
	untracks := []func(){
		runningPods.Track(count(func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })),
		retryingPods.Track(func() float64 { return float64(c.syncLane.Retrying()) }, c.nodeName),
		stuckPods.Track(func() float64 { return float64(c.countStuck(ctx)) }, c.nodeName),
		orphansHeldBack.Track(c.worker.orphans.held.Get, c.nodeName),
		missingPods.Track(c.worker.missing.held.Get, c.nodeName),
	}
	for name, q := range map[string]*keyqueue.Queue{"sync": c.syncLane, "status": c.statusLane, "poll": c.pollLane} {
		untracks = append(untracks,
			queueDepth.Track(func() float64 { n, _ := q.Backlog(); return float64(n) }, name),
			queueOldest.Track(func() float64 { _, age := q.Backlog(); return age.Seconds() }, name))
	}
	return func() {
		for _, untrack := range untracks {
			untrack()
		}
	}
}
