// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Lie is what GetPods says that is not so, without an error.
type Lie struct {
	Times int           // how many lists are lies; 0: all until Heal
	Empty bool          // no pods at all
	Page  int           // only so many of them; 0: all
	Stale bool          // the pods as they are now, when the lie begins
	Add   []*corev1.Pod // pods that the backend does not have, such as other nodes'

	then []*corev1.Pod // of Stale
}

// Lie lets lists lie. The first lie that is not used up counts.
func (b *Backend) Lie(l Lie) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.Stale {
		l.then = b.list()
	}
	b.lies = append(b.lies, &l)
}

// GetPods returns copies of all pods.
func (b *Backend) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	lost, err := b.ask(ctx, List, "", "")
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	pods := b.list()
	for _, l := range b.lies {
		if l.Times < 0 {
			continue
		}
		if l.Times == 1 {
			l.Times = -1 // used up
		} else if l.Times > 1 {
			l.Times--
		}
		pods = l.tell(pods)
		break
	}
	return pods, lost
}

// list is every pod that the backend has, as it hands them out. mu is held.
func (b *Backend) list() (out []*corev1.Pod) {
	for _, in := range b.instances {
		out = append(out, b.hand(in.pod))
	}
	return out
}

func (l *Lie) tell(pods []*corev1.Pod) []*corev1.Pod {
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
