// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
)

// Lie is a false answer of GetPods, without an error.
type Lie struct {
	Times int           // number of wrong lists; 0: all until For has passed, or Heal
	For   time.Duration // when the lie ends; 0: with Times or Heal
	Empty bool          // no pods at all
	Page  int           // the maximum number of pods in a list; 0: all
	Stale bool          // the list of pods stays as it is at the beginning of the lie
	Add   []*corev1.Pod // pods that the backend does not have, for example pods of other nodes
	// Reads makes GetPod and GetPodStatus also answer that the backend lacks the pods that the list leaves out,
	// as with a cache that is not filled yet.
	Reads bool
	// Deletes makes DeletePod do nothing and answer the same.
	Deletes bool

	until time.Time     // of For
	then  []*corev1.Pod // of Stale
}

// Lie makes lists lie. The first lie that is not used up counts.
func (b *Backend) Lie(l Lie) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.Stale {
		l.then = b.list()
	}
	if l.For > 0 {
		l.until = time.Now().Add(l.For)
	}
	b.lies = append(b.lies, &l)
}

// Truth ends all lies.
func (b *Backend) Truth() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lies = nil
}

// GetPods returns copies of all pods.
func (b *Backend) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	lost, err := b.injectFault(ctx, List, "", "")
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	pods := b.list()
	if l := b.currentLie(); l != nil {
		if l.Times == 1 {
			l.Times = -1 // used up
		} else if l.Times > 1 {
			l.Times--
		}
		pods = l.alterList(pods)
	}
	return pods, lost
}

// read returns a copy of the pod under a name.
func (b *Backend) read(ctx context.Context, method, key string) (*corev1.Pod, error) {
	lost, err := b.injectFault(ctx, method, key, "")
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	in := b.visibleInstance(key)
	if l := b.currentLie(); l != nil && l.Reads && b.isDenied(l, key) {
		in = nil
	}
	switch {
	case in != nil:
		return b.copyForCaller(in.pod), lost
	case b.PlainErrors:
		return nil, fmt.Errorf("%s: cannot find the pod", key)
	}
	return nil, errdefs.NotFound("no such pod")
}

// visibleInstance returns the visible instance under a name. The caller holds mu.
func (b *Backend) visibleInstance(key string) (found *instance) {
	for _, in := range b.instances {
		switch {
		case in.hidden || Key(in.pod) != key:
		case in.running, b.EndedFirst:
			return in
		default:
			found = in
		}
	}
	return found
}

// currentLie returns the current lie, or nil. The caller holds mu.
func (b *Backend) currentLie() *Lie {
	for _, l := range b.lies {
		if l.Times >= 0 && (l.until.IsZero() || time.Now().Before(l.until)) {
			return l
		}
	}
	return nil
}

// isDenied reports whether a lie leaves out the pods of a name. The caller holds mu.
func (b *Backend) isDenied(l *Lie, key string) bool {
	return !slices.ContainsFunc(l.alterList(b.list()), func(p *corev1.Pod) bool { return Key(p) == key })
}

// list returns copies of all visible pods. The caller holds mu.
func (b *Backend) list() (out []*corev1.Pod) {
	for _, in := range b.instances {
		if !in.hidden {
			out = append(out, b.copyForCaller(in.pod))
		}
	}
	return out
}

// revealPod makes a new pod visible.
func (b *Backend) revealPod(in *instance) {
	b.mu.Lock()
	in.hidden = false
	if !in.running { // the instance ended before, and may be kept
		if slices.Contains(b.instances, in) {
			b.recordChange(ledger.Status, in, false)
		}
		b.mu.Unlock()
		return
	}
	pod := in.pod.DeepCopy()
	pod.Status = in.runningStatus()
	in.pod = pod
	b.recordChange(ledger.Status, in, false)
	b.mu.Unlock()
	b.reportPod(pod)
}

func (l *Lie) alterList(pods []*corev1.Pod) []*corev1.Pod {
	if l.Stale {
		pods = nil
		for _, pod := range l.then {
			pods = append(pods, pod.DeepCopy())
		}
	}
	if l.Page > 0 && l.Page < len(pods) {
		pods = pods[:l.Page]
	}
	if l.Empty {
		pods = nil
	}
	for _, pod := range l.Add {
		pods = append(pods, pod.DeepCopy())
	}
	return pods
}
