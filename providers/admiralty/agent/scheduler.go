// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

const (
	// roundEvery is the interval of rounds if there are no watch events.
	roundEvery = 15 * time.Second
	// calm is how long a round waits for further events.
	calm = 50 * time.Millisecond
	// retryAfter is the pause before the next round after a failed request.
	retryAfter = time.Second
)

// scheduler binds pods to nodes. It has no persistent state.
type scheduler struct {
	client                    kubernetes.Interface
	targets                   []*target
	factories                 []informers.SharedInformerFactory
	podInformer, nodeInformer cache.SharedIndexInformer
	events                    record.EventRecorder
	wake                      chan struct{}

	// Owned by the goroutine of the rounds.
	assumed   map[types.UID]string      // the nodes of bound pods whose binding is not in the watch cache yet
	doubtful  map[types.UID]*corev1.Pod // pods whose binding has an unknown outcome
	explained map[types.UID]explanation // why pods wait
	refused   map[types.UID]refusal     // pods with a refused binding
}

func newScheduler(client kubernetes.Interface, c Config) (*scheduler, error) {
	s := &scheduler{client: client, wake: make(chan struct{}, 1), assumed: map[types.UID]string{}, doubtful: map[types.UID]*corev1.Pod{}, explained: map[types.UID]explanation{}, refused: map[types.UID]refusal{}}
	for _, t := range c.Targets {
		w, err := newTarget(t, s.requestRound)
		if err != nil {
			return nil, err
		}
		s.targets = append(s.targets, w)
	}
	going := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = "status.phase!=Succeeded,status.phase!=Failed"
	}))
	plain := informers.NewSharedInformerFactory(client, 0)
	s.factories = []informers.SharedInformerFactory{going, plain}
	s.podInformer, s.nodeInformer = going.Core().V1().Pods().Informer(), plain.Core().V1().Nodes().Informer()
	_ = s.podInformer.SetTransform(s.trimPod) // neither call can fail before the informer runs
	_ = s.nodeInformer.SetTransform(onlyRequests)
	for _, informer := range []cache.SharedIndexInformer{s.podInformer, s.nodeInformer} {
		if err := onChange(informer, s.requestRound); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// trimPod saves memory: it keeps only the identity of pods that do not concern the agent.
func (s *scheduler) trimPod(o any) (any, error) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	pod.ManagedFields = nil
	ours := pod.Spec.SchedulerName == SchedulerName
	for _, t := range s.targets {
		ours = ours || pod.Spec.NodeName == t.Node
	}
	if !ours {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
			Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName, SchedulerName: pod.Spec.SchedulerName}}, nil
	}
	return pod, nil
}

// requestRound requests a round.
func (s *scheduler) requestRound() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run binds pods until ctx ends. It waits for a complete list first, so that bindings of an earlier agent count.
func (s *scheduler) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: s.client.CoreV1().Events("")})
	s.events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: SchedulerName})
	for _, f := range s.factories {
		f.StartWithContext(ctx)
		defer f.Shutdown()
	}
	defer cancel() // before the shutdowns, which wait for the end of ctx
	for _, t := range s.targets {
		wg.Go(func() { t.run(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), s.podInformer.HasSynced, s.nodeInformer.HasSynced) {
		return
	}
	ticker := time.NewTicker(roundEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.wake:
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if !sleepFor(ctx, calm) {
			return
		}
		s.runRound(ctx)
	}
}

// sleepFor waits for d. It returns false if ctx ends first.
func sleepFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
