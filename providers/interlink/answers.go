// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"cmp"
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// singleAfter is the number of consecutive partial answers of a plugin after which each pod is requested alone.
const singleAfter = 3

// answers holds the states of pods from one round of requests to the server and its plugin. A pod in none of the
// maps has no answer.
type answers struct {
	has   map[types.UID]wire.PodStatus
	lacks map[types.UID]bool // the plugin denies that it has the pod, or leaves the pod out of the answer to a request for this pod alone
	fails map[types.UID]bool // the request for this pod alone failed in the plugin
}

// add records the answer to a request about pods. It returns the pods missing from the answer.
func (a answers) add(pods []*corev1.Pod, said []wire.PodStatus) (left []*corev1.Pod) {
	for _, pod := range pods {
		i := slices.IndexFunc(said, func(s wire.PodStatus) bool { return s.UID == string(pod.UID) })
		switch {
		case i < 0:
			left = append(left, pod)
		case told(said[i]):
			a.has[pod.UID] = said[i]
		default:
			a.lacks[pod.UID] = true
		}
	}
	return left
}

// asker requests the states of pods and adapts to the way the plugin answers. Only one goroutine uses an asker
// at a time.
type asker struct {
	client *client
	turned types.UID // the last pod with a request of its own in the rotation
	parts  int       // partly answered requests in a row
}

// ask requests the states of all pods at once, and then alone each pod that the answer lacks. It also requests each pod alone if the
// plugin refuses the common request: some plugins answer only for the first pod, or for none because of one pod. forgotten has the
// pods that the server has just forgotten. ask requests at most most pods alone.
func (k *asker) ask(ctx context.Context, pods []*corev1.Pod, known map[types.UID]poll.Known[instance], forgotten []types.UID, most int) (answers, error) {
	a := answers{has: map[types.UID]wire.PodStatus{}, lacks: map[types.UID]bool{}, fails: map[types.UID]bool{}}
	alone, together, refused := pods, len(pods) > 1 && k.parts < singleAfter, false
	if together {
		said, err := k.client.statuses(ctx, stubs(pods))
		switch {
		case err == nil:
			alone = a.add(pods, said)
		case !ofPlugin(err):
			k.parts = 0 // another plugin may answer next
			return a, err
		default:
			refused = !absent(err) // a 404 refers to the first pod only
		}
	}
	whole := slices.ContainsFunc(forgotten, func(uid types.UID) bool { _, has := a.has[uid]; return has && uid != pods[0].UID })
	var failed error
	part, fresh := false, refused // a plugin does not repeat an error
	for _, pod := range k.turn(alone, known, most, refused) {
		said, err := k.client.statuses(ctx, []*corev1.Pod{stub(pod)})
		left := err == nil && len(a.add([]*corev1.Pod{pod}, said)) > 0
		switch {
		case left && refused && !fresh: // the plugin may have failed for this pod, and repeat its answer for another pod
			a.fails[pod.UID] = true
		case left, lacksPod(err, pod.UID):
			a.lacks[pod.UID] = true
		case err == nil:
			_, has := a.has[pod.UID]
			part = part || has && !refused
		case ofPlugin(err): // the answers for other pods still count
			a.fails[pod.UID], failed = true, errors.Join(failed, err)
		default:
			k.parts = 0
			return a, err
		}
		fresh = err != nil
	}
	if together {
		k.answered(ctx, part, whole)
	}
	if len(a.has)+len(a.lacks) > 0 {
		return a, nil
	}
	if failed != nil {
		k.parts = 0
	}
	return a, failed
}

// turn returns the pods to request alone now: stopping pods first, and the other pods in rotation.
func (k *asker) turn(pods []*corev1.Pod, known map[types.UID]poll.Known[instance], most int, refused bool) []*corev1.Pod {
	if len(pods) == 0 || len(pods) <= most && !refused {
		return pods
	}
	rank := func(p *corev1.Pod) int {
		switch {
		case known[p.UID].Stopping:
			return 0
		case p.UID > k.turned:
			return 1
		}
		return 2
	}
	pods = slices.SortedFunc(slices.Values(pods), func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.UID, b.UID))
	})
	if len(pods) <= most {
		k.turned = pods[0].UID // the first answer may hide the others, as a plugin repeats it
		return pods
	}
	// Stopping pods take at most half of the turns, so that many stopping pods cannot starve the others.
	stopping := slices.IndexFunc(pods, func(p *corev1.Pod) bool { return rank(p) > 0 })
	if stopping < 0 {
		stopping = len(pods)
	}
	now := slices.Clone(pods[:min(stopping, most/2)])
	now = append(now, pods[stopping:min(len(pods), stopping+most-len(now))]...)
	k.turned = now[len(now)-1].UID
	return now
}

// answered counts the requests with a partial answer of the plugin. An answer that cannot come from the memory
// of the server resets the count.
func (k *asker) answered(ctx context.Context, part, whole bool) {
	switch {
	case whole:
		k.parts = 0
	case part:
		if k.parts++; k.parts == singleAfter {
			log.G(ctx).Warn("The plugin of interLink answers for a part of the pods of a request; each pod is asked for alone from now on")
		}
	}
}
