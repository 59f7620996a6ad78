// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
)

// askAgain is the time that a call waits for the next result of lists or Find.
const askAgain = 2 * time.Second

// Provider runs pods at a service. It is a nodeutil.Provider with every ability of the kit; see the package.
type Provider[T any] struct {
	config    Config
	driver    Driver[T]
	cache     *poll.Cache[T]
	resolver  resolver
	doubts    doubts
	renewals  renewals
	brief     brief
	leftovers *leftovers // nil without a Remover
	prober    *prober[T] // nil without a Prober
	restarts  *restarts  // nil without a Starter
	offers    offered
}

// Unlisted is a Provider without node.PodAuthority, for a service without a list. The service may have lost its state, so the node doubts
// that many pods have vanished at once.
type Unlisted[T any] struct {
	*Provider[T]
	noAuthority //nolint:unused // its method hides the method of Provider
}

// noAuthority has the method of node.PodAuthority at the same depth as Provider in Unlisted, so Unlisted does
// not have this method.
type noAuthority struct{} //nolint:unused // its method hides the method of Provider

// AnswersForAllPods only hides the method of Provider.
func (noAuthority) AnswersForAllPods() {} //nolint:unused // its method hides the method of Provider

// Cache returns the last known state of each pod at the service. A driver passes instances from sources other than lists to Take.
func (p *Provider[T]) Cache() *poll.Cache[T] { return p.cache }

// Leave makes the kit call the driver's Remove with a name, until it succeeds or this process ends; see Remover.
// Leave may be called again with the same name. It panics if the driver is no Remover.
func (p *Provider[T]) Leave(name string) { p.leftovers.add(name) }

// Keep revokes a Leave, because a thing of the name is about to be created or used again. It waits for the end of a running removal.
func (p *Provider[T]) Keep(ctx context.Context, name string) error {
	return p.leftovers.keep(ctx, name)
}

// Resolve returns a pod with all data from other objects, as in Create.
func (p *Provider[T]) Resolve(ctx context.Context, pod *corev1.Pod) (*Inputs, error) {
	return p.resolver.resolve(ctx, pod)
}

// isKnown reports whether the service is known to have a pod.
func (p *Provider[T]) isKnown(uid types.UID) bool {
	_, _, ok := p.cache.Get(uid)
	return ok
}

// Knows reports whether the service or the cluster is known to have a pod. A driver calls it before it removes unneeded things.
func (p *Provider[T]) Knows(uid types.UID) bool {
	if p.isKnown(uid) || p.config.Pods == nil {
		return true
	}
	pods, err := p.config.Pods.List(labels.Everything())
	return err != nil || slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.UID == uid })
}

// offered is the node in the cluster, and its current capacity.
type offered struct {
	mu       sync.Mutex
	node     *corev1.Node        // guarded by mu; nil before ConfigureNode
	report   func(*corev1.Node)  // guarded by mu; nil without a listener
	capacity corev1.ResourceList // guarded by mu; nil: the capacity of the node
}

// Offer changes the capacity of the node; all of it is allocatable. A driver calls Offer when it learns the
// capacity of the service for pods. An unchanged capacity is not reported again.
func (p *Provider[T]) Offer(capacity corev1.ResourceList) {
	p.offers.mu.Lock()
	defer p.offers.mu.Unlock()
	p.offers.capacity = capacity.DeepCopy()
	p.offers.tell()
}

// tell reports the capacity if the node does not have it yet. The caller holds mu.
func (o *offered) tell() {
	if o.node == nil || o.report == nil || o.capacity == nil || equality.Semantic.DeepEqual(o.node.Status.Capacity, o.capacity) {
		return
	}
	o.node = o.node.DeepCopy()
	o.node.Status.Capacity, o.node.Status.Allocatable = o.capacity.DeepCopy(), o.capacity.DeepCopy()
	o.report(o.node)
}

// InCluster returns the pod of an identity in the cluster, or nil.
func (p *Provider[T]) InCluster(id poll.Identity) *corev1.Pod {
	if p.config.Pods == nil {
		return nil
	}
	pod, err := p.config.Pods.Pods(id.Namespace).Get(id.Name)
	if err != nil || pod.UID != id.UID {
		return nil
	}
	return pod
}

// had reports whether the cluster has the pod with a status from an instance.
func (p *Provider[T]) had(namespace, name string) bool {
	if p.config.Pods == nil {
		return false
	}
	pod, err := p.config.Pods.Pods(namespace).Get(name)
	return err == nil && pod.Status.StartTime != nil
}

// Capabilities implements capability.Declarer.
func (p *Provider[T]) Capabilities() capability.Declaration { return p.config.Capabilities }

// AnswersForAllPods implements node.PodAuthority: lists are complete, or errors. The last instance of an earlier
// process may appear late. A service without a list answers only about requested pods; see Unlisted.
func (p *Provider[T]) AnswersForAllPods() bool { return p.cache.Complete() }

// NotifyPods implements node.PodNotifier.
func (p *Provider[T]) NotifyPods(_ context.Context, notify func(*corev1.Pod)) {
	p.brief.notify = notify
	p.cache.Notify(p.brief.report)
}

// Inputs returns a pod with all data from other objects, as in Create.
func (p *Provider[T]) Inputs(ctx context.Context, pod *corev1.Pod) (*Inputs, error) {
	return p.resolver.resolve(ctx, pod)
}

// UsePodObjects implements node.PodObjectsUser.
func (p *Provider[T]) UsePodObjects(objects node.PodObjects) { p.resolver.objects = objects }

// UsePodTokens implements node.PodTokensUser.
func (p *Provider[T]) UsePodTokens(tokens node.PodTokens) { p.resolver.tokens = tokens }

// UsePodClaims implements node.PodClaimsUser.
func (p *Provider[T]) UsePodClaims(claims node.PodClaims) { p.resolver.claims = claims }

// UsePullCredentials implements node.PullCredentialsUser.
func (p *Provider[T]) UsePullCredentials(credentials node.PullCredentials) {
	p.resolver.credentials = credentials
}

// GetPod implements node.PodLifecycleHandler. While lists fail, it returns the last known state of a pod, and
// does not report an unknown pod as missing.
func (p *Provider[T]) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod, _, err := p.find(ctx, namespace, name)
	return pod, err
}

// GetPodStatus implements node.PodLifecycleHandler.
func (p *Provider[T]) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, _, err := p.find(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods implements node.PodLifecycleHandler. It returns an error while lists fail.
func (p *Provider[T]) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	if err := p.failing(); err != nil {
		return nil, err
	}
	return p.cache.All(), nil
}

// find returns the pod of a name with its instance.
func (p *Provider[T]) find(ctx context.Context, namespace, name string) (*corev1.Pod, T, error) {
	var none T
	if err := p.wait(ctx); err != nil {
		return nil, none, err
	}
	pod, instance, err := p.cache.Find(namespace, name)
	if err == nil {
		p.doubts.clear(pod.UID) // this instance is the missing one
	}
	if errdefs.IsNotFound(err) {
		if failing := p.failing(); failing != nil {
			return nil, none, failing
		}
		if left := p.mayBe(namespace, name); left > 0 {
			return nil, none, p.mayAppear(left)
		}
	}
	return pod, instance, err
}

// mayBe returns the time for which an instance of a pod in the cluster may still appear, if the service must not receive a second create
// until then.
func (p *Provider[T]) mayBe(namespace, name string) time.Duration {
	if p.config.Again != AgainMakesAnother || p.config.Pods == nil {
		return 0
	}
	pod, err := p.config.Pods.Pods(namespace).Get(name)
	if err != nil {
		return 0
	}
	return p.doubts.left(pod)
}

// mayAppear returns the error of a call about a pod whose instance may exist but is not visible yet.
func (p *Provider[T]) mayAppear(left time.Duration) error {
	return errdefs.RetryAfter(fmt.Errorf("whether %s has made the pod is not known for another %s: an answer was lost", p.config.Service, left.Round(time.Second)),
		p.pause(left))
}

// pause returns the wait before the kit requests a late instance again. Most instances appear soon.
func (p *Provider[T]) pause(left time.Duration) time.Duration {
	return min(left, max(askAgain, (p.config.SeenWithin-left)/2))
}

// failing returns the error of lists, or nil.
func (p *Provider[T]) failing() error {
	if err, _ := p.cache.LastError(); err != nil {
		return fmt.Errorf("%s does not tell the states of pods: %w", p.config.Service, err)
	}
	return nil
}

// wait returns nil when the pods from before a restart are known, else an error.
func (p *Provider[T]) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.config.Patience)
	defer cancel()
	return p.cache.Wait(ctx)
}
