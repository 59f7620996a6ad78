// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// errCrashed is the result of requests of a crashed daemon, which never sees it.
var errCrashed = errors.New("the daemon has crashed")

// simLife is one life of the daemon. All its effects on the world pass through it, and have no effect after a crash.
type simLife struct {
	world *simWorld
	stop  context.CancelFunc
	ctl   *PodController
	done  chan error // result of Run

	mu      sync.Mutex
	crashed bool // guarded by mu
	effects int  // guarded by mu; effects until the crash, 0: no crash is planned
}

func (l *simLife) dead() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.crashed {
		return errCrashed
	}
	return nil
}

// crash blocks all later effects.
func (l *simLife) crash() {
	l.mu.Lock()
	l.crashed = true
	l.mu.Unlock()
	l.stop()
}

// happened counts an effect on the world. A daemon that crashes with this effect does not see the result.
func (l *simLife) happened() error {
	l.mu.Lock()
	due := l.effects == 1
	l.effects = max(0, l.effects-1)
	l.mu.Unlock()
	if due {
		l.crash()
	}
	return l.dead()
}

// plan makes the daemon crash after this number of effects; 0 cancels the plan.
func (l *simLife) plan(effects int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.effects = effects
}

// effect performs an effect, unless the daemon has crashed.
func effect[T any](l *simLife, do func() (T, error)) (got T, err error) {
	if err := l.dead(); err != nil {
		return got, err
	}
	got, err = do()
	if crashed := l.happened(); crashed != nil {
		err = crashed
	}
	return got, err
}

// simProvider is the backend for one life of the daemon.
type simProvider struct {
	*memory.Backend
	life *simLife
}

func (p simProvider) change(do func() error) error {
	_, err := effect(p.life, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func (p simProvider) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	return p.change(func() error { return p.Backend.CreatePod(ctx, pod) })
}

func (p simProvider) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	return p.change(func() error { return p.Backend.UpdatePod(ctx, pod) })
}

func (p simProvider) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	return p.change(func() error { return p.Backend.DeletePod(ctx, pod) })
}

func (p simProvider) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	if err := p.life.dead(); err != nil {
		return nil, err
	}
	return p.Backend.GetPod(ctx, namespace, name)
}

func (p simProvider) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	if err := p.life.dead(); err != nil {
		return nil, err
	}
	pods, err := p.Backend.GetPods(ctx)
	p.life.world.listed(pods)
	return pods, err
}

// simNotifier is a simProvider that reports.
type simNotifier struct{ simProvider }

func (p simNotifier) NotifyPods(ctx context.Context, notify func(*corev1.Pod)) {
	memory.Notifying{Backend: p.Backend}.NotifyPods(ctx, func(pod *corev1.Pod) {
		if p.life.dead() == nil {
			notify(pod)
		}
	})
}

// simAuthority is a provider that knows whether its answers are complete.
type simAuthority struct{ simProvider }

func (a simAuthority) AnswersForAllPods() bool { return !time.Now().Before(a.life.world.lieEnds) }

// simClient is the client of the API server for one life of the daemon.
type simClient struct {
	corev1client.PodsGetter
	life *simLife
}

func (c simClient) Pods(namespace string) corev1client.PodInterface {
	return simPodClient{c.PodsGetter.Pods(namespace), c.life}
}

type simPodClient struct {
	corev1client.PodInterface
	life *simLife
}

func (c simPodClient) Patch(ctx context.Context, name string, kind types.PatchType, body []byte, opts metav1.PatchOptions, sub ...string) (*corev1.Pod, error) {
	return effect(c.life, func() (*corev1.Pod, error) { return c.PodInterface.Patch(ctx, name, kind, body, opts, sub...) })
}

func (c simPodClient) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	_, err := effect(c.life, func() (struct{}, error) { return struct{}{}, c.PodInterface.Delete(ctx, name, opts) })
	return err
}
