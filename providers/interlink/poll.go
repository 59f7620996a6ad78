// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// run asks the server until ctx ends. While there is no pod that can change it asks nothing.
func (t *tracker) run(ctx context.Context) {
	wait, failing := t.every, false
	timer := time.NewTimer(wait)
	defer timer.Stop()
	next := time.Now().Add(wait)
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
			if time.Until(next) > soon { // never later: many creates must not keep the states away
				next = time.Now().Add(soon)
				timer.Reset(soon)
			}
			continue
		case <-timer.C:
		}
		err := t.poll(ctx)
		switch {
		case err == nil:
			if failing {
				log.G(ctx).Info("The interLink API server tells the states of pods again")
			}
			wait, failing = t.every, false
		case ctx.Err() == nil:
			t.anew()
			if !failing {
				log.G(ctx).WithError(err).Warn("The interLink API server does not tell the states of pods; they stay as they were seen last")
			}
			wait, failing = min(2*wait, max(slowest, t.every)), true
		}
		next = time.Now().Add(wait)
		timer.Reset(wait)
	}
}

// poll asks for the states of all pods that can change.
func (t *tracker) poll(ctx context.Context) error {
	pods, forget := t.open()
	if len(pods) == 0 {
		return nil
	}
	asked := time.Now()
	for _, uid := range forget {
		if err := t.client.forget(ctx, string(uid)); err != nil { // what it remembers only hides what it lacks: the states of the others are true
			if !t.stuck {
				log.G(ctx).WithError(err).Warn("The interLink API server does not forget pods; one that its plugin has lost is told of as it was")
			}
			t.stuck = true
			break
		}
		t.stuck = false
	}
	lacked := t.lackedPods() // a plugin that repeats this answer must have them in it
	said, err := t.ask(ctx, slices.Concat(pods, lacked), forget, aloneAtOnce)
	if err != nil {
		return err
	}
	t.apply(ctx, pods, said, asked)
	t.adoptAll(lacked, said)
	return nil
}

// anew asks for all pods with one request again: another plugin may answer next.
func (t *tracker) anew() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.parts = 0
}

func stubs(pods []*corev1.Pod) (out []*corev1.Pod) {
	for _, p := range pods {
		out = append(out, stub(p))
	}
	return out
}

// open returns the pods that can change, and those that the server is to forget first: it answers from its memory where the plugin has
// no answer, so a pod that the plugin lost would be as it was for ever. Those that stop come first, then one after the other.
func (t *tracker) open() (pods []*corev1.Pod, forget []types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.pods {
		if k.stopping || !terminal(k.pod.Status.Phase) {
			pods = append(pods, k.pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.UID, b.UID) })
	after := slices.IndexFunc(pods, func(p *corev1.Pod) bool { return p.UID > t.rotated })
	for i := range pods {
		if p := pods[(max(after, 0)+i)%len(pods)]; t.pods[p.UID].stopping || i == 0 {
			forget = append(forget, p.UID)
			if i == 0 {
				t.rotated = p.UID
			}
		}
		if len(forget) == forgetAtOnce {
			break
		}
	}
	return pods, forget
}

func terminal(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// apply takes down what the server said of the pods that it was asked for. A pod without an answer stays as it is, and is not missing.
func (t *tracker) apply(ctx context.Context, asked []*corev1.Pod, said answers, at time.Time) {
	t.order.Lock()
	defer t.order.Unlock()
	for _, p := range asked {
		if s, ok := said.has[p.UID]; ok {
			t.take(p.UID, s)
			continue
		}
		t.mu.Lock()
		k := t.pods[p.UID]
		if k != nil && !said.lacks[p.UID] && !said.later[p.UID] {
			k.missing = 0
		}
		if k == nil || !said.lacks[p.UID] || k.since.After(at) {
			t.mu.Unlock()
			continue
		}
		if k.missing++; k.missing == 1 {
			k.without = at
		}
		told := k.seen || time.Since(k.since) > unseenFor
		gone := k.stopping && k.missing >= goneAfter && (told || k.accepted)
		lost := !k.stopping && k.missing >= missingAfter && time.Since(k.without) >= missingFor && told
		if gone || lost {
			delete(t.pods, p.UID)
		}
		if lost {
			t.lacked[p.UID] = k.pod
		}
		t.mu.Unlock()
		if lost {
			log.G(ctx).WithField("pod", p.Namespace+"/"+p.Name).Warn("The interLink API server has lost the pod")
		}
	}
}
