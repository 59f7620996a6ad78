// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// session is an open provider, with its reports.
type session struct {
	provider   node.PodLifecycleHandler
	cancel     context.CancelFunc
	background chan error // nil: the provider has no work in the background

	mu      sync.Mutex
	reports []*corev1.Pod       // guarded by mu
	calls   func(p *corev1.Pod) // guarded by mu; called with each report
}

// openBackend makes the backend of the check.
func (c *C) openBackend() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.ctx))
	c.addCleanup(cancel)
	pods := &nodePods{c: c}
	c.env = Env{Namespace: c.ns, Logf: c.Logf, ProviderConfig: nodeutil.ProviderConfig{
		Pods: pods.podLister(), ConfigMaps: c.objects.configMapLister(), Secrets: c.objects.secretLister(), Services: c.objects.serviceLister(),
		Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}, Recorder: events{c},
	}}
	backend, err := c.h.Backend(ctx, c.env)
	if err != nil {
		c.Fatalf("make the backend: %v", err)
	}
	c.backend = backend
	if backend.Close != nil {
		c.addCleanup(func() {
			if err := backend.Close(); err != nil {
				c.Errorf("close the backend: %v", err)
			}
		})
	}
	c.addCleanup(c.closeSession)
	c.addCleanup(c.removeAll)
}

// nodeName is the name of the node in every check.
const nodeName = "contract"

// events records events in the log of the check.
type events struct{ c *C }

var _ record.EventRecorder = events{}

func (e events) Event(_ runtimeObject, eventType, reason, message string) {
	e.c.Logf("event: %s %s %s", eventType, reason, message)
}

func (e events) Eventf(o runtimeObject, eventType, reason, format string, args ...any) {
	e.Event(o, eventType, reason, fmt.Sprintf(format, args...))
}

func (e events) AnnotatedEventf(o runtimeObject, _ map[string]string, eventType, reason, format string, args ...any) {
	e.Eventf(o, eventType, reason, format, args...)
}

// openProvider opens the provider, if it is not open, as a daemon does.
func (c *C) openProvider() *session {
	s, err := c.tryOpen()
	if err != nil {
		c.Fatalf("open the provider: %v", err)
	}
	return s
}

func (c *C) tryOpen() (*session, error) {
	if c.node != nil {
		return c.node, nil
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.ctx))
	p, err := c.backend.Open(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	s := &session{provider: p, cancel: cancel}
	if user, ok := p.(node.PodObjectsUser); ok {
		user.UsePodObjects(c.objects)
	}
	if notifier, ok := p.(node.PodNotifier); ok {
		notifier.NotifyPods(ctx, s.recordReport)
	}
	if runner, ok := p.(node.BackgroundRunner); ok {
		s.background = make(chan error, 1)
		go func() { s.background <- runner.RunInBackground(ctx) }()
	}
	c.node = s
	return s, nil
}

// recordReport takes a report down.
func (s *session) recordReport(pod *corev1.Pod) {
	s.mu.Lock()
	s.reports = append(s.reports, pod.DeepCopy())
	call := s.calls
	s.mu.Unlock()
	if call != nil {
		call(pod)
	}
}

// reportsOf returns the reports about a pod, in order.
func (s *session) reportsOf(uid types.UID) (out []*corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.reports {
		if p.UID == uid {
			out = append(out, p)
		}
	}
	return out
}

// closeSession ends the daemon.
func (c *C) closeSession() {
	s := c.node
	if s == nil {
		return
	}
	c.node = nil
	s.cancel()
	if s.background == nil {
		return
	}
	timer := time.NewTimer(c.h.Patience)
	defer timer.Stop()
	select {
	case err := <-s.background:
		if err != nil && !errors.Is(err, context.Canceled) {
			c.Logf("the work in the background ended with: %v", err)
		}
	case <-timer.C:
		c.Errorf("RunInBackground did not return %s after its context ended", c.h.Patience)
	}
}

// reopenProvider restarts the daemon. A provider that asks for the objects of pods is told of each earlier pod, as the
// node does.
func (c *C) reopenProvider() *session {
	c.closeSession()
	s := c.openProvider()
	if _, ok := s.provider.(node.PodObjectsUser); ok {
		for _, pod := range c.objects.recordedPods() {
			if err := s.provider.UpdatePod(c.ctx, pod); err != nil {
				c.Logf("UpdatePod of %s after the restart: %v", pod.Name, err)
			}
		}
	}
	return s
}

// removeAll deletes all pods of the check, and waits until they are gone.
func (c *C) removeAll() {
	pods := c.objects.recordedPods()
	if len(pods) == 0 {
		return
	}
	s, err := c.tryOpen()
	if err != nil {
		for _, pod := range pods {
			c.recordLeft(pod, fmt.Sprintf("open the provider: %v", err))
		}
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), c.h.Patience)
	defer cancel()
	for _, l := range removePods(ctx, s.provider, pods, c.h.Every) {
		c.recordLeft(l.pod, l.why)
	}
}

// pauseFor waits between two looks.
func pauseFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
