// SPDX-License-Identifier: Apache-2.0

package localpath

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// Driver is the provisioner name in the StorageClasses of this package.
	Driver = "virtual-kubelet.io/local-path"
	// NodeLabel is the label of PersistentVolumes with the name of their node.
	NodeLabel = "virtual-kubelet.io/node"
	// callTimeout bounds the requests for one object.
	callTimeout = time.Minute
	// firstRetry and lastRetry bound the pauses after a failure.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
	// standbyPause is the interval at which a standby process checks its role. The check costs no request.
	standbyPause = 5 * time.Second
)

// Config has the parts of a Controller. All fields are required.
type Config struct {
	// Client reads and writes single objects, and Watches lists and watches objects.
	Client, Watches kubernetes.Interface
	// Node is the name of the node, and Hostname its label kubernetes.io/hostname.
	Node, Hostname string
	// Make makes the directory of a volume if it is missing, and returns its path.
	Make func(ctx context.Context, name string) (path string, err error)
	// Remove removes the directory of a volume with its content, if it exists.
	Remove func(ctx context.Context, name string) error
	// StandsBy reports whether another process acts for the node. That process may run on another machine, with other directories.
	StandsBy func() bool
	// Recorder records events about claims and volumes.
	Recorder record.EventRecorder
}

// Controller makes and removes volumes while Run is running.
type Controller struct {
	cfg     Config
	claims  corev1listers.PersistentVolumeClaimLister
	volumes corev1listers.PersistentVolumeLister
}

// New returns a controller. It does nothing until Run.
func New(cfg Config) *Controller { return &Controller{cfg: cfg} }

// Run handles claims and volumes until ctx ends. It returns nil after all its goroutines have ended.
func (c *Controller) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	all := informers.NewSharedInformerFactory(c.cfg.Watches, 0)
	own := informers.NewSharedInformerFactoryWithOptions(c.cfg.Watches, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = labels.Set{NodeLabel: c.cfg.Node}.String()
	}))
	claims, volumes := all.Core().V1().PersistentVolumeClaims(), own.Core().V1().PersistentVolumes()
	c.claims, c.volumes = claims.Lister(), volumes.Lister()
	wanted, left := newQueue(), newQueue()
	registrations := make([]cache.InformerSynced, 0, 2)
	for informer, queue := range map[cache.SharedIndexInformer]queue{claims.Informer(): wanted, volumes.Informer(): left} {
		registration, err := informer.AddEventHandler(queue.eventHandler())
		if err != nil {
			cancel()
			return err
		}
		registrations = append(registrations, registration.HasSynced)
	}
	var wg sync.WaitGroup
	defer func() {
		cancel()
		wanted.ShutDown()
		left.ShutDown()
		wg.Wait()
		all.Shutdown()
		own.Shutdown()
	}()
	all.Start(ctx.Done())
	own.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registrations...) {
		return nil
	}
	wg.Go(func() { wanted.handleObjects(ctx, c.cfg.StandsBy, c.provisionClaim) })
	wg.Go(func() { left.handleObjects(ctx, c.cfg.StandsBy, c.reclaimVolume) }) // slow removals do not delay new volumes
	<-ctx.Done()
	return nil
}

// queue has the keys of objects to handle.
type queue struct {
	workqueue.TypedRateLimitingInterface[string]
}

func newQueue() queue {
	return queue{workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry))}
}

func (q queue) eventHandler() cache.ResourceEventHandler {
	add := func(o any) {
		if key, err := cache.MetaNamespaceKeyFunc(o); err == nil {
			q.Add(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, o any) { add(o) }}
}

// handleObjects handles the objects one by one until the queue is shut down. Failed objects are retried later, and so are all objects while this
// process stands by.
func (q queue) handleObjects(ctx context.Context, standsBy func() bool, do func(ctx context.Context, key string) error) {
	for {
		key, shutdown := q.Get()
		if shutdown {
			return
		}
		if standsBy() {
			q.AddAfter(key, standbyPause)
			q.Done(key)
			continue
		}
		err := do(ctx, key)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			log.G(ctx).WithError(err).WithField("object", key).Warn("local volume: trying again")
			q.AddRateLimited(key)
		default:
			q.Forget(key)
		}
		q.Done(key)
	}
}

// refused is an error for which a retry is useless. A change of the object triggers another attempt.
type refused struct{ error }

// recordError records an error of an object as an event, and returns the error if a retry can help.
func (c *Controller) recordError(o runtime.Object, reason string, err error) error {
	if err == nil {
		return nil
	}
	c.cfg.Recorder.Event(o, corev1.EventTypeWarning, reason, err.Error())
	if final := (refused{}); errors.As(err, &final) {
		return nil
	}
	return err
}
