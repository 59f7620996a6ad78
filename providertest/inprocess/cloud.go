// SPDX-License-Identifier: Apache-2.0

// Package inprocess is a backend whose containers are goroutines of this process, and a complete provider on it:
// programs of package program implement logs, exec, attach, port-forward, probes, hooks, volumes and restarts.
// The contract of providers is tested on this package, and it is a provider to read before writing one.
//
// The guarantee: the backend outlives its providers, as a cloud does. A Provider keeps nothing that it could not
// find again, and everything ends with the context of New.
//
// Note: a container runs one program.Program, given in its last argument; an image means nothing. And
// package memory is another backend: it starts nothing, but it lies, fails and keeps a ledger.
//
// It does not replace the runtime of podruntime's tests, podruntime/internal/fakecri. That runtime is a level
// lower, has containers and no pods, and follows the script of a test. This package runs the programs of the
// contract, and restarts and probes containers as a service does.
package inprocess

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Errors of requests to an unhealthy backend.
var (
	ErrOutage    = errors.New("the backend does not answer")
	ErrThrottled = errors.New("429 Too Many Requests")
)

// Cloud is the backend.
type Cloud struct {
	ctx context.Context // ends every container

	mu   sync.Mutex
	pods []*pod // guarded by mu; the oldest first
	runs int    // guarded by mu; number of container runs so far

	fault      error         // guarded by mu; the answer to every request
	loseAnswer bool          // guarded by mu; of the next CreatePod
	stale      []*corev1.Pod // guarded by mu; the frozen lists; nil: lists are current
	watchers   []*Provider   // guarded by mu
}

// New returns a backend without pods. Its containers end with ctx.
func New(ctx context.Context) *Cloud { return &Cloud{ctx: ctx} }

// Fail makes every request fail with err until it is called with nil.
func (c *Cloud) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = err
}

// LoseAnswer makes the next CreatePod succeed, and return an error.
func (c *Cloud) LoseAnswer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loseAnswer = true
}

// Stale freezes lists at the current state, until it is called with false.
func (c *Cloud) Stale(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale = nil
	if on {
		c.stale = c.list()
	}
}

// list returns all pods, or the frozen list. The caller holds mu.
func (c *Cloud) list() []*corev1.Pod {
	out := make([]*corev1.Pod, 0, len(c.pods)) // not nil
	if c.stale != nil {
		for _, p := range c.stale {
			out = append(out, p.DeepCopy())
		}
		return out
	}
	for _, p := range c.pods {
		out = append(out, p.withStatus())
	}
	return out
}

// Instances returns the number of instances of a pod that run or will run. It is 0 once the status of the pod is
// terminal. For a pod that is asked to stop, it is 0 once all of its containers have ended: a service that shows
// only containers may report that end before the pod is over.
func (c *Cloud) Instances(uid types.UID) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pods {
		if p.uid != uid {
			continue
		}
		if phase := p.withStatus().Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed && !p.hasStopped() {
			n++
		}
	}
	return n
}

// Left returns the names of the existing pods, by their kind.
func (c *Cloud) Left() map[string][]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := map[string][]string{}
	for _, p := range c.pods {
		shown := p.withStatus()
		left["pods"] = append(left["pods"], shown.Namespace+"/"+shown.Name)
	}
	return left
}

// hasStopped reports whether the pod was asked to stop, and each of its containers has stopped. The caller holds
// cloud.mu.
func (p *pod) hasStopped() bool {
	return p.asked && !slices.ContainsFunc(p.containers, func(k *container) bool { return k.run == nil || !k.run.hasEnded() })
}

// Kill ends a container as SIGKILL does.
func (c *Cloud) Kill(uid types.UID, container string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pods {
		if p.uid != uid {
			continue
		}
		if k := p.findContainer(container); k != nil && k.run != nil && !k.run.hasEnded() {
			k.run.kill()
			return nil
		}
	}
	return fmt.Errorf("kill container %s of pod %s: it does not run", container, uid)
}

// Lose makes a pod vanish.
func (c *Cloud) Lose(uid types.UID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.pods, func(p *pod) bool { return p.uid == uid })
	if i < 0 {
		return fmt.Errorf("lose pod %s: the backend does not have it", uid)
	}
	p := c.pods[i]
	c.pods = slices.Delete(c.pods, i, i+1)
	p.lost = true
	p.cancel()
	return nil
}

// injectedFault is called before every request of a provider to the backend.
func (c *Cloud) injectedFault() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault
}

// findPod returns the pod of a name, or nil. The caller holds mu.
func (c *Cloud) findPod(namespace, name string) *pod {
	for _, p := range c.pods {
		if p.spec.Namespace == namespace && p.spec.Name == name {
			return p
		}
	}
	return nil
}

// byUID returns the pod of a UID, or nil. The caller holds mu.
func (c *Cloud) byUID(uid types.UID) *pod {
	for _, p := range c.pods {
		if p.uid == uid {
			return p
		}
	}
	return nil
}

// sendState sends the current state of a pod to the providers. The caller holds mu.
func (c *Cloud) sendState(p *pod) {
	if p.lost {
		return
	}
	shown := p.withStatus()
	for _, w := range c.watchers {
		w.queue = append(w.queue, shown.DeepCopy())
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// remove removes a pod whose last state was reported. The caller holds mu.
func (c *Cloud) remove(p *pod) {
	c.pods = slices.DeleteFunc(c.pods, func(q *pod) bool { return q == p })
}
