// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

const (
	// toldFor is how long the plugin still reports a deleted pod, because a client may ask how the pod ended.
	toldFor = 2 * time.Minute
	// lostAfter is the number of consecutive lists without a pod after which it counts as lost.
	lostAfter = 2
	// lostFor is the minimum time of these lists. doubtedFor replaces it if the provider does not report whether its lists are complete.
	lostFor, doubtedFor = 10 * time.Second, time.Minute
)

// reported records a status from the provider.
func (p *pods) reported(r *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := p.all[r.UID]; k != nil {
		r.Status.DeepCopyInto(&k.status)
		k.before = false
		p.objects.seen(p.given(k.Pod), &k.status)
	}
}

// unsure returns an error while the provider has neither reported nor lost one of the pods since the plugin started. Clients then keep
// the state from before the start.
func (p *pods) unsure(asked []*corev1.Pod) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range asked {
		if k := p.all[a.UID]; k != nil && k.before && !k.lost && k.Deleted == nil {
			return fmt.Errorf("provider %s has not told of the pod %s/%s since the plugin started", p.runner, k.Pod.Namespace, k.Pod.Name)
		}
	}
	return nil
}

// statuses returns the statuses of pods. It leaves out pods that were never accepted.
func (p *pods) statuses(asked []*corev1.Pod) []wire.PodStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := []wire.PodStatus{}
	for _, a := range asked {
		if k := p.all[a.UID]; k != nil && k.Accepted {
			out = append(out, tell(k.Pod, &k.status, p.job(a.UID), k.lost || !k.gone.IsZero()))
		}
	}
	return out
}

// list returns the pods of the provider.
func (p *pods) list(ctx context.Context) (map[types.UID]*corev1.Pod, error) {
	list, err := p.provider.GetPods(ctx)
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", p.runner, err)
	}
	have := map[types.UID]*corev1.Pod{}
	for _, r := range list {
		if r != nil {
			have[r.UID] = r
		}
	}
	return have, nil
}

// patience returns how long lists must lack a pod until the pod counts as lost. If none is true, lists prove
// nothing at the moment.
func (p *pods) patience() (long time.Duration, none bool) {
	if a, ok := p.provider.(node.PodAuthority); ok {
		return lostFor, !a.AnswersForAllPods()
	}
	return doubtedFor, false
}

// refresh updates everything that the provider does not report itself: lost pods and, if the provider reports
// nothing, statuses.
func (p *pods) refresh(ctx context.Context) error {
	asked := time.Now()
	patience, none := p.patience() // before the list, because it judges how complete the list is
	have, err := p.list(ctx)
	if err != nil {
		return err
	}
	_, reports := p.provider.(node.PodNotifier)
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid, k := range p.all {
		switch r := have[uid]; {
		case !k.gone.IsZero():
			if time.Since(k.gone) > toldFor {
				delete(p.all, uid)
			}
		case r != nil:
			if !reports || k.status.Phase == "" || k.lost {
				r.Status.DeepCopyInto(&k.status)
				p.objects.seen(p.given(k.Pod), &k.status)
			}
			k.lost, k.missing, k.before = false, 0, false
		case k.lost || !k.Accepted || !k.since.Before(asked) || k.Deleted != nil || p.busy[uid] != nil || ended(k.status.Phase):
		case none:
			k.missing = 0
		default:
			if k.missing++; k.missing == 1 {
				k.without = asked
			}
			if k.lost = k.missing >= lostAfter && asked.Sub(k.without) >= patience; k.lost {
				log.G(ctx).WithField("pod", k.Pod.Namespace+"/"+k.Pod.Name).Warn("The provider has lost the pod")
			}
		}
	}
	return nil
}
