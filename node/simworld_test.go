// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"sync"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/internal/objects"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/memapi"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// simWorld is an API server, a backend, and the lives of a daemon between them, in fake time.
type simWorld struct {
	ctx      context.Context
	plan     simSchedule
	api      *memapi.API
	backend  *memory.Backend
	life     *simLife    // nil: the daemon is down
	births   []time.Time // start times of lives
	ends     []time.Time // end times of lives
	uids     int
	last     map[string]types.UID // UID of the last created pod, by name
	rejected bool                 // the provider was told to reject a pod
	errs     []string             // errors of Run
	lieEnds  time.Time
	denials  []simSpan // upper bounds of the lies that include reads
	blind    bool      // a lie denies all pods, for longer than a single pod may be missing
	draining bool      // the daemon was told to stop all pods

	mu       sync.Mutex
	fail     map[string]int // guarded by mu; number of failing requests, by verb
	lose     map[string]int // guarded by mu; number of requests with a lost response, by verb
	oldLists map[string]int // guarded by mu; keyed by key and UID: number of lists that showed an ended pod as running
}

// simSpan is a period of time.
type simSpan struct{ from, to time.Time }

func newSimWorld(ctx context.Context, plan simSchedule) *simWorld {
	w := &simWorld{ctx: ctx, plan: plan, api: memapi.New(), backend: memory.New(), fail: map[string]int{}, lose: map[string]int{}, oldLists: map[string]int{},
		last: map[string]types.UID{}}
	b := w.backend
	b.StopTime, b.ExitCode, b.KeepsNoUID = plan.StopTime, plan.ExitCode, plan.KeepsNoUID
	b.KeepsEnded, b.EndedFirst, b.PlainErrors = plan.KeepsEnded, plan.EndedFirst, plan.PlainErrors
	b.ShowsAfter, b.SaysPending = plan.ShowsAfter, plan.SaysPending
	// A pod that was never visible is created again if the response, or the daemon, was lost.
	b.Idempotent = plan.ShowsAfter > 0 || plan.Lies == allLie
	w.api.Witness = witness(w.backend.Recorder)
	w.api.Fault = func(verb, _, _ string) error { return w.unlucky(w.fail, verb) }
	w.api.Lost = func(verb, _, _ string) error { return w.unlucky(w.lose, verb) }
	return w
}

// unlucky returns the error of a request, or nil.
func (w *simWorld) unlucky(left map[string]int, verb string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if left[verb] == 0 {
		return nil
	}
	left[verb]--
	switch left[verb] % 3 {
	case 0:
		return apierrors.NewServiceUnavailable("simulated")
	case 1:
		return apierrors.NewTooManyRequests("simulated", 1)
	}
	return fmt.Errorf("simulated: %w", context.DeadlineExceeded)
}

func (w *simWorld) spoil(left map[string]int, verb string, times int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left[verb] = times
}

// start starts a life of the daemon.
func (w *simWorld) start() {
	if w.life != nil {
		return
	}
	time.Sleep(time.Millisecond) // no two lives start at the same time
	ctx, cancel := context.WithCancel(w.ctx)
	life := &simLife{world: w, stop: cancel, done: make(chan error, 1)}
	none := objects.NewStore(nil) // the pods refer to no objects
	pods, services := w.pods(), simServices{newInformer(nothing, &corev1.Service{}, 0)}
	cfg := PodControllerConfig{
		PodClient: simClient{w.api, life}, PodInformer: pods, EventRecorder: &record.FakeRecorder{},
		ConfigMapInformer: none.ConfigMaps(), SecretInformer: none.Secrets(), ServiceInformer: services,
		Provider:              simNotifier{simProvider{w.backend, life}},
		MissingPodsQuarantine: simQuarantine,
		PodVisibilityTimeout:  w.visibleWithin(),
	}
	provider := simProvider{w.backend, life}
	switch {
	case w.plan.Silent && w.plan.Authority:
		cfg.Provider = simAuthority{provider}
	case w.plan.Silent:
		cfg.Provider = provider
	case w.plan.Authority:
		cfg.Provider = struct {
			simNotifier
			PodAuthority
		}{simNotifier{provider}, simAuthority{provider}}
	}
	if w.plan.NodeName {
		cfg.NodeName = "n"
	}
	var err error
	if life.ctl, err = NewPodController(cfg); err != nil {
		panic(err)
	}
	w.life, w.births = life, append(w.births, time.Now())
	go func() {
		var all sync.WaitGroup
		all.Go(func() { pods.informer.RunWithContext(ctx) })
		all.Go(func() { services.informer.RunWithContext(ctx) })
		err := life.ctl.Run(ctx, 4)
		all.Wait()
		life.done <- err
	}()
}

// end stops the daemon regularly.
func (w *simWorld) end() {
	if w.life == nil {
		return
	}
	w.life.stop()
	w.backend.Mute()
	w.ends = append(w.ends, time.Now())
	err := <-w.life.done
	if err != nil && !isClosed(w.life.ctl.Ready()) {
		err = nil // it was still waiting for the API server
	}
	if err != nil {
		w.errs = append(w.errs, fmt.Sprintf("Run: %v", err))
	}
	w.life = nil
}

// pass advances the time. It cleans up a daemon that has crashed.
func (w *simWorld) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	if w.life != nil && w.life.dead() != nil {
		w.end()
	}
}

// run runs the steps of the schedule, then ends all faults and waits until nothing can be left to do.
func (w *simWorld) run() {
	w.start()
	for _, step := range w.plan.Steps {
		for _, action := range simActions {
			if action.name == step.Do {
				action.do(w, step)
				w.see()
			}
		}
		w.pass(step.Then)
	}
	drained := w.drain()
	w.calm()
	w.pass(0)
	w.start()
	w.pass(4 * time.Minute)
	if w.draining {
		select {
		case err := <-drained:
			if err != nil {
				w.errs = append(w.errs, fmt.Sprintf("Drain: %v", err))
			}
		default:
			w.errs = append(w.errs, "Drain: it has not returned")
		}
	}
	if w.rejected {
		w.pass(rejectedRetry) // rejected pods are not retried earlier
	}
}

// drain begins to stop all pods, if the schedule has a drain and the daemon is up.
func (w *simWorld) drain() <-chan error {
	drained := make(chan error, 1)
	if !w.plan.Drains || w.life == nil || w.life.dead() != nil || !isClosed(w.life.ctl.Ready()) {
		return drained
	}
	w.draining = true
	w.backend.Recorder.Drain()
	ctl := w.life.ctl
	w.life.plan(0) // no crash: the drain of a process that ends is over
	go func() { drained <- ctl.Drain(w.ctx, DrainGroups(3*time.Minute, 30*time.Second)...) }()
	w.pass(time.Second)
	return drained
}

// calm ends all faults.
func (w *simWorld) calm() {
	w.mu.Lock()
	clear(w.fail)
	clear(w.lose)
	w.mu.Unlock()
	if w.life != nil {
		w.life.plan(0)
	}
	w.backend.Heal()
	w.api.CatchUp()
	w.api.Cut() // including silent watches
}

// simInformer is an informer of pods that lists the latest version, like that of a node.
type simInformer struct{ informer cache.SharedIndexInformer }

func (i simInformer) Informer() cache.SharedIndexInformer { return i.informer }

func (i simInformer) Lister() corev1listers.PodLister {
	return corev1listers.NewPodLister(i.informer.GetIndexer())
}

func (w *simWorld) pods() simInformer {
	all := w.api.Pods("")
	return simInformer{newInformer(cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.ResourceVersion = ""
			return all.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return all.Watch(ctx, o)
		},
	}, &corev1.Pod{}, time.Minute)}
}

// simServices is an informer without services.
type simServices struct{ informer cache.SharedIndexInformer }

func (i simServices) Informer() cache.SharedIndexInformer { return i.informer }

func (i simServices) Lister() corev1listers.ServiceLister {
	return corev1listers.NewServiceLister(i.informer.GetIndexer())
}

var nothing = cache.ListWatch{
	ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		return &corev1.ServiceList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
	},
	WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
}

func newInformer(source cache.ListWatch, kind runtime.Object, resync time.Duration) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(simSource{&source}, kind, resync, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// simSource keeps the reflector from asking for a streamed list.
type simSource struct{ *cache.ListWatch }

func (simSource) IsWatchListSemanticsUnSupported() bool { return true }
