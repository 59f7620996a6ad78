// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	coordclientset "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lease"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

var errCut = errors.New("connection reset by peer")

// link is the connection of a daemon to the outside: all its requests pass through it.
type link struct {
	name string
	w    *twins // records the effects on the world

	mu     sync.Mutex
	slow   time.Duration // guarded by mu: delay of the backend's answers
	dead   bool          // guarded by mu: the daemon was killed, and has no more effects
	cut    chan struct{} // guarded by mu: closed when the API server is reachable again; nil: reachable
	frozen chan struct{} // guarded by mu: closed when the process resumes; nil: running
}

func (l *link) freeze() { l.mu.Lock(); defer l.mu.Unlock(); l.frozen = make(chan struct{}) }
func (l *link) part()   { l.mu.Lock(); defer l.mu.Unlock(); l.cut = make(chan struct{}) }
func (l *link) kill()   { l.mu.Lock(); defer l.mu.Unlock(); l.dead = true }

// heal ends a freeze and a partition.
func (l *link) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range []chan struct{}{l.cut, l.frozen} {
		if c != nil {
			close(c)
		}
	}
	l.cut, l.frozen = nil, nil
}

func (l *link) state() (dead bool, cut, frozen chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead, l.cut, l.frozen
}

// arrive waits until an answer of the backend reaches the running process.
func (l *link) arrive() {
	l.mu.Lock()
	slow := l.slow
	l.mu.Unlock()
	if slow > 0 { // a timer that is due at once crashes the runtime of Go 1.26 with the race detector in a bubble
		<-time.After(slow)
	}
	l.resume()
}

// resume waits until the process runs.
func (l *link) resume() {
	if _, _, frozen := l.state(); frozen != nil {
		<-frozen
	}
}

// request waits until a request reaches the API server. Requests are lost if they were about to be sent when the process froze, or during a
// partition.
func (l *link) request(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	dead, cut, frozen := l.state()
	switch {
	case frozen != nil:
		<-frozen
		return errCut
	case dead:
		return errCut
	case cut != nil:
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-cut:
			return errCut
		}
	}
	return nil
}

// linkedPods is a client for pods behind a link.
type linkedPods struct {
	corev1client.PodInterface
	link *link
}

type podsBehind struct{ link *link }

func (p podsBehind) Pods(namespace string) corev1client.PodInterface {
	return linkedPods{p.link.w.api.Pods(namespace), p.link}
}

func (p linkedPods) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Pod, error) {
	if err := p.link.request(ctx); err != nil {
		return nil, err
	}
	return p.PodInterface.Get(ctx, name, o)
}

func (p linkedPods) List(ctx context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
	if err := p.link.request(ctx); err != nil {
		return nil, err
	}
	if o.ResourceVersion == "" {
		p.link.w.note(p.link.name, "list")
		defer func() { <-time.After(p.link.w.listTakes) }()
	}
	return p.PodInterface.List(ctx, o)
}

func (p linkedPods) Patch(ctx context.Context, name string, kind types.PatchType, body []byte, o metav1.PatchOptions, sub ...string) (*corev1.Pod, error) {
	if err := p.link.request(ctx); err != nil {
		return nil, err
	}
	p.link.w.note(p.link.name, "patch "+name)
	return p.PodInterface.Patch(ctx, name, kind, body, o, sub...)
}

func (p linkedPods) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	if err := p.link.request(ctx); err != nil {
		return err
	}
	p.link.w.note(p.link.name, "remove "+name)
	return p.PodInterface.Delete(ctx, name, o)
}

// Watch delays events while the process is frozen or partitioned.
func (p linkedPods) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if err := p.link.request(ctx); err != nil {
		return nil, err
	}
	w, err := p.PodInterface.Watch(ctx, o)
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		p.link.resume()
		if _, cut, _ := p.link.state(); cut != nil {
			<-cut
		}
		return e, true
	}), nil
}

// leaseServer stores the leases of one node as an API server does.
type leaseServer struct {
	mu       sync.Mutex
	revision int                   // guarded by mu
	lease    *coordinationv1.Lease // guarded by mu; nil: none
}

func (s *leaseServer) get() (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil {
		return nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), testNodeName)
	}
	return s.lease.DeepCopy(), nil
}

func (s *leaseServer) put(lease *coordinationv1.Lease, create bool) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gr := coordinationv1.Resource("leases")
	switch {
	case create && s.lease != nil:
		return nil, apierrors.NewAlreadyExists(gr, testNodeName)
	case !create && s.lease == nil:
		return nil, apierrors.NewNotFound(gr, testNodeName)
	case !create && lease.ResourceVersion != s.lease.ResourceVersion:
		return nil, apierrors.NewConflict(gr, testNodeName, errors.New("the object has been modified"))
	}
	s.revision++
	s.lease = lease.DeepCopy()
	s.lease.ResourceVersion = strconv.Itoa(s.revision)
	if s.lease.Spec.RenewTime != nil { // as decoded from JSON
		t := metav1.NewMicroTime(s.lease.Spec.RenewTime.Truncate(1000))
		s.lease.Spec.RenewTime = &t
	}
	return s.lease.DeepCopy(), nil
}

// change edits the lease as another client; nil deletes it.
func (s *leaseServer) change(edit func(*coordinationv1.Lease)) {
	lease, err := s.get()
	if err != nil {
		return
	}
	if edit == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lease = nil
		return
	}
	edit(lease)
	if _, err := s.put(lease, false); err != nil {
		panic(err)
	}
}

// linkedLeases is a client for leases behind a link.
type linkedLeases struct {
	coordclientset.LeaseInterface // nil: other verbs are not used
	link                          *link
}

func (l linkedLeases) Get(ctx context.Context, _ string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	if err := l.link.request(ctx); err != nil {
		return nil, err
	}
	return l.link.w.leases.get()
}

func (l linkedLeases) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	if err := l.link.request(ctx); err != nil {
		return nil, err
	}
	return l.put(lease, true)
}

// Update fails the test if it changes a lease without a later renewal time: with the feature gate NodeControllerLeaseCircuitBreaker, the
// control plane never marks a node with such a lease as unreachable.
func (l linkedLeases) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if err := l.link.request(ctx); err != nil {
		return nil, err
	}
	before, _ := l.link.w.leases.get() // an error means that put fails too
	got, err := l.put(lease, false)
	if err == nil && before != nil && !before.Spec.RenewTime.Before(got.Spec.RenewTime) {
		l.link.w.Errorf("%s changes the lease without a later renewal: it was renewed at %s before, and at %s now, with the annotations %v",
			l.link.name, before.Spec.RenewTime, got.Spec.RenewTime, got.Annotations)
	}
	return got, err
}

func (l linkedLeases) put(sent *coordinationv1.Lease, create bool) (*coordinationv1.Lease, error) {
	got, err := l.link.w.leases.put(sent, create)
	if err == nil && lease.ParseMark(got.Annotations[lease.HolderAnnotation]).Host == l.link.name {
		l.link.w.note(l.link.name, "renew")
	}
	return got, err
}

// linkedProvider is one daemon's access to a shared backend.
type linkedProvider struct {
	memory *memory.Backend
	link   *link
}

// NotifyPods delivers reports in order; a frozen daemon receives them when it resumes.
func (p *linkedProvider) NotifyPods(ctx context.Context, notify func(*corev1.Pod)) {
	news := make(chan *corev1.Pod, 1<<12)
	p.link.w.subscribe(p.link.name, func(pod *corev1.Pod) { news <- pod })
	go func() {
		for {
			select {
			case <-ctx.Done():
				p.link.w.subscribe(p.link.name, nil)
				return
			case pod := <-news:
				p.link.resume()
				notify(pod)
			}
		}
	}()
}

// mutate makes a request take effect at the backend, even if the daemon ends.
func (p *linkedProvider) mutate(verb string, pod *corev1.Pod, call func(context.Context, *corev1.Pod) error) error {
	dead, _, frozen := p.link.state()
	if dead {
		return errCut
	}
	p.link.w.mutates(p.link.name, verb, pod, frozen != nil)
	err := call(context.Background(), pod)
	if err == nil && verb == "create" {
		p.link.w.created(pod.UID)
	}
	p.link.resume()
	return err
}

func (p *linkedProvider) CreatePod(_ context.Context, pod *corev1.Pod) error {
	return p.mutate("create", pod, p.memory.CreatePod)
}

func (p *linkedProvider) UpdatePod(_ context.Context, pod *corev1.Pod) error {
	return p.mutate("update", pod, p.memory.UpdatePod)
}

func (p *linkedProvider) DeletePod(_ context.Context, pod *corev1.Pod) error {
	return p.mutate("delete", pod, p.memory.DeletePod)
}

// Answers reach the daemon when it runs, and may be old then.

func (p *linkedProvider) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	defer p.link.arrive()
	return p.memory.GetPod(ctx, namespace, name)
}

func (p *linkedProvider) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	defer p.link.arrive()
	return p.memory.GetPodStatus(ctx, namespace, name)
}

func (p *linkedProvider) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	defer p.link.arrive()
	return p.memory.GetPods(ctx)
}
