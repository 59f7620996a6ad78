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
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// aloneAtOnce is how many pods are asked for alone, one request for each, when the states are asked for: with a second between, 1200 requests
// in a minute, however many pods there are.
const aloneAtOnce = 20

// singleAfter is how many requests in a row a plugin must answer in part until each pod is asked for alone.
const singleAfter = 3

// answers are the states of pods that the server and its plugin tell. A pod in no map has no answer.
type answers struct {
	has   map[types.UID]wire.PodStatus
	lacks map[types.UID]bool // the plugin says that it does not have the pod, or leaves it out when it is asked for this pod alone
	later map[types.UID]bool // to be asked for alone with the next answers
}

// add adds the answer to a request about pods, and returns the pods that the answer leaves out.
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

// told reports whether an entry tells of a job: it has the ID of the job, or a state of a container. Interlink's Slurm plugin answers for a
// pod without a job with containers that have no state.
func told(s wire.PodStatus) bool {
	has := func(c corev1.ContainerStatus) bool { return c.State != corev1.ContainerState{} }
	return s.JobID != "" || slices.ContainsFunc(s.Containers, has) || slices.ContainsFunc(s.InitContainers, has)
}

// ask asks for pods with one request, and for each pod alone that the answer leaves out. It asks for each pod alone, too, when the plugin
// refuses the request: plugins answer for the first pod only, or for none because of one pod. The server remembers nothing of the pods in
// forgotten. It asks for no more than most pods alone.
func (t *tracker) ask(ctx context.Context, pods []*corev1.Pod, forgotten []types.UID, most int) (answers, error) {
	a := answers{has: map[types.UID]wire.PodStatus{}, lacks: map[types.UID]bool{}, later: map[types.UID]bool{}}
	alone, together, refused := pods, len(pods) > 1 && !t.single(), false
	if together {
		said, err := t.client.statuses(ctx, stubs(pods))
		switch {
		case err == nil:
			alone = a.add(pods, said)
		case !ofPlugin(err):
			return a, err
		default:
			refused = !absent(err) // a 404 is about the first pod
		}
	}
	whole := slices.ContainsFunc(forgotten, func(uid types.UID) bool { _, has := a.has[uid]; return has && uid != pods[0].UID })
	var failed error
	part, fresh := false, refused // an error is no answer that a plugin gives again
	for _, pod := range t.turn(alone, most, refused, a) {
		said, err := t.client.statuses(ctx, []*corev1.Pod{stub(pod)})
		left := err == nil && len(a.add([]*corev1.Pod{pod}, said)) > 0
		switch {
		case left && refused && !fresh: // the plugin may have failed for this pod, and give the answer again that it gave for another
		case left, lacksPod(err, pod.UID):
			a.lacks[pod.UID] = true
		case err == nil:
			_, has := a.has[pod.UID]
			part = part || has && !refused
		case ofPlugin(err): // the others are answered for all the same
			failed = errors.Join(failed, err)
		default:
			return a, err
		}
		fresh = err != nil
	}
	if together {
		t.answered(ctx, part, whole)
	}
	if len(a.has)+len(a.lacks) > 0 {
		failed = nil
	}
	return a, failed
}

// turn returns the pods that are asked for alone now: those that stop, and then each in its turn. The others are asked for later.
func (t *tracker) turn(pods []*corev1.Pod, most int, refused bool, a answers) []*corev1.Pod {
	if len(pods) == 0 || len(pods) <= most && !refused {
		return pods
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	rank := func(p *corev1.Pod) int {
		switch k := t.pods[p.UID]; {
		case k != nil && k.stopping:
			return 0
		case p.UID > t.turned:
			return 1
		}
		return 2
	}
	pods = slices.SortedFunc(slices.Values(pods), func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.UID, b.UID))
	})
	if len(pods) <= most {
		t.turned = pods[0].UID // the first answer may hide the others, as a plugin repeats it
		return pods
	}
	// Pods that stop take half of the turns, as many of them must not keep the others from theirs.
	stopping := slices.IndexFunc(pods, func(p *corev1.Pod) bool { return rank(p) > 0 })
	if stopping < 0 {
		stopping = len(pods)
	}
	now := slices.Clone(pods[:min(stopping, most/2)])
	now = append(now, pods[stopping:min(len(pods), stopping+most-len(now))]...)
	for _, p := range pods {
		if !slices.Contains(now, p) {
			a.later[p.UID] = true
		}
	}
	t.turned = now[len(now)-1].UID
	return now
}

// single reports whether each pod is asked for alone.
func (t *tracker) single() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.parts >= singleAfter
}

// answered counts the requests that the plugin answered in part. An answer that the server cannot have from its memory begins the count anew.
func (t *tracker) answered(ctx context.Context, part, whole bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case whole:
		t.parts = 0
	case part:
		if t.parts++; t.parts == singleAfter {
			log.G(ctx).Warn("The plugin of interLink answers for a part of the pods of a request; each pod is asked for alone from now on")
		}
	}
}

// look asks the server for one pod; nil is a pod that it does not have. The request has the pods, too, that answers lack at the moment:
// Interlink's Slurm plugin gives its last answer for ten seconds, whatever it is asked, and they would be missing for as long.
func (p *provider) look(ctx context.Context, pod *corev1.Pod) (*wire.PodStatus, error) {
	pods := []*corev1.Pod{pod}
	for _, other := range slices.Concat(p.tracker.missing(), p.tracker.lackedPods()) {
		if other.UID != pod.UID {
			pods = append(pods, other)
		}
	}
	said, err := p.client.statuses(ctx, stubs(pods))
	of := func(s wire.PodStatus) bool { return s.UID == string(pod.UID) }
	if len(pods) > 1 && (ofPlugin(err) || err == nil && !slices.ContainsFunc(said, of)) {
		said, err = p.client.statuses(ctx, stubs(pods[:1]))
	}
	if lacksPod(err, pod.UID) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(said, of); i >= 0 && told(said[i]) {
		return &said[i], nil
	}
	return nil, nil
}

// missing returns the pods that the last answers lack.
func (t *tracker) missing() (pods []*corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.pods {
		if k.missing > 0 {
			pods = append(pods, k.pod)
		}
	}
	return pods
}
