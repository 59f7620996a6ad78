// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
)

// goneAfter is how often in a row ECS must say that it has no task that it has told of, until the pod is gone.
const goneAfter = 3

// watch is what is known about asking for tasks.
type watch struct {
	mu     sync.Mutex
	tasks  map[string]*inquiry // guarded by mu; by ARN
	others map[string]bool     // guarded by mu; tasks that have ended and are none of a pod of this node

	doubts   map[types.UID]time.Time // guarded by mu; pods for which a task was asked without an answer, and when
	patience time.Duration           // how long ECS may take until it shows a task
}

// doubtful is how long a task may run of which nobody knows, as its request had no answer: ECS shows it within that.
const doubtful = 2 * time.Minute

// doubt notes that a task is asked for.
func (w *watch) doubt(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.doubts == nil {
		w.doubts = map[types.UID]time.Time{}
	}
	w.doubts[uid] = time.Now()
}

// sure notes that the task of a pod is known.
func (w *watch) sure(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.doubts, uid)
}

// doubted reports whether a task of a pod may run of which nobody knows.
func (w *watch) doubted(uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.doubts[uid]
	return ok && time.Since(at) < w.patience
}

// unsure reports whether any does.
func (w *watch) unsure() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid, at := range w.doubts {
		if time.Since(at) >= w.patience {
			delete(w.doubts, uid)
		}
	}
	return len(w.doubts) > 0
}

// told reports whether ECS has told of a task.
func (w *watch) told(arn string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of(arn).told
}

// inquiry is how a task was asked about.
type inquiry struct {
	at      time.Time
	missing int  // answers in a row that ECS has no such task
	told    bool // ECS has told of it
	stop    bool // it was asked to stop
}

// of returns what is known of a task. w.mu is held.
func (w *watch) of(arn string) *inquiry {
	if w.tasks[arn] == nil {
		w.tasks[arn] = &inquiry{}
	}
	return w.tasks[arn]
}

func (w *watch) stop(arn string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of(arn).stop = true
}

func (w *watch) stopping(arn string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of(arn).stop
}

// note takes an answer of ECS down, and returns the tasks that it has ceased to have.
func (w *watch) note(at time.Time, tasks []ecstypes.Task, missing []string) (gone []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range tasks {
		a := w.of(aws.ToString(t.TaskArn))
		a.at, a.missing, a.told = at, 0, true
	}
	for _, arn := range missing {
		a := w.of(arn)
		if a.at = at; a.told {
			if a.missing++; a.missing >= goneAfter {
				gone = append(gone, arn)
			}
		}
	}
	return gone
}

// next returns which tasks a round asks about: those on their way, and as many others as fit into the same request, the one that was
// asked about longest ago first. So a round at rest is one request, however many pods there are.
func (w *watch) next(all []ecstypes.Task) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	keep := map[string]*inquiry{}
	var moving, others []string
	for _, t := range all {
		arn := aws.ToString(t.TaskArn)
		a := w.of(arn)
		keep[arn] = a
		switch {
		case ended(t):
		case a.stop || a.missing > 0 || aws.ToString(t.LastStatus) != stateRunning || aws.ToString(t.DesiredStatus) != stateRunning:
			moving = append(moving, arn)
		default:
			others = append(others, arn)
		}
	}
	w.tasks = keep
	slices.SortStableFunc(others, func(a, b string) int { return cmp.Or(w.tasks[a].at.Compare(w.tasks[b].at), cmp.Compare(a, b)) })
	room := (batch - len(moving)%batch) % batch
	if len(moving) == 0 {
		room = batch
	}
	return append(moving, others[:min(room, len(others))]...)
}

// known returns what the cache has, with the UIDs by ARN.
func (p *provider) known() (tasks []ecstypes.Task, pods map[string]*corev1.Pod) {
	pods = map[string]*corev1.Pod{}
	for _, pod := range p.cache.All() {
		if _, t, ok := p.cache.Get(pod.UID); ok {
			tasks, pods[aws.ToString(t.TaskArn)] = append(tasks, t), pod
		}
	}
	return tasks, pods
}

// changed asks about some of the tasks.
func (p *provider) changed(ctx context.Context, _ time.Time) ([]ecstypes.Task, error) {
	all, pods := p.known()
	arns := p.watch.next(all)
	if p.watch.unsure() { // lists are rare: this one has the tasks whose request had no answer
		live, err := p.service.started(ctx, p.mapping.startedBy())
		if err != nil {
			return nil, err
		}
		for _, arn := range live {
			if pods[arn] == nil {
				arns = append(arns, arn)
			}
		}
	}
	if len(arns) == 0 {
		return nil, p.service.ping(ctx) // no pod asks for anything, and Ping wants to know
	}
	at := time.Now()
	tasks, missing, err := p.service.describe(ctx, arns)
	if err != nil {
		return nil, err
	}
	for _, arn := range p.watch.note(at, tasks, missing) {
		if pods[arn] != nil {
			p.cache.Forget(pods[arn].UID)
		}
	}
	p.sure(tasks)
	p.learn(tasks)
	return tasks, nil
}

// sure notes of tasks that they are known.
func (p *provider) sure(tasks []ecstypes.Task) {
	for _, t := range tasks {
		if id, ours := p.identify(t); ours {
			p.watch.sure(id.UID)
		}
	}
}

// learn takes down what tasks say besides their states, however they were asked about. The cache is told of them afterwards.
func (p *provider) learn(tasks []ecstypes.Task) {
	for _, t := range tasks {
		// A secret may have been removed. Lists have the task for an hour, and it is news once.
		if ended(t) && t.StopCode == ecstypes.TaskStopCodeTaskFailedToStart {
			id, _ := p.identify(t)
			if _, before, ok := p.cache.Get(id.UID); ok && aws.ToString(before.TaskArn) == id.ID && !ended(before) {
				p.made.forget()
			}
		}
	}
	p.leftovers.take(p.mapping, tasks)
}

// list returns every task of the node. Those that are to run are in one list of ECS, all others of the last hour in another one, which has
// those of everybody. What is known of a task that is in them is not asked for again.
func (p *provider) list(ctx context.Context) ([]ecstypes.Task, error) {
	all, pods := p.known()
	at := time.Now()
	live, err := p.service.started(ctx, p.mapping.startedBy())
	if err != nil {
		return nil, err
	}
	halted, err := p.service.stopped(ctx)
	if err != nil {
		return nil, err
	}
	var out []ecstypes.Task
	var ask []string
	for _, t := range all {
		arn := aws.ToString(t.TaskArn)
		if ended(t) || slices.Contains(live, arn) && aws.ToString(t.LastStatus) == stateRunning && !p.watch.stopping(arn) {
			out = append(out, t) // what has ended does not change, and ECS forgets it while its pod may be kept
		} else {
			ask = append(ask, arn)
		}
	}
	for _, arn := range slices.Concat(live, halted) {
		if pods[arn] == nil && !p.foreign(arn) {
			ask = append(ask, arn)
		}
	}
	slices.Sort(ask)
	tasks, missing, err := p.service.describe(ctx, slices.Compact(ask))
	if err != nil {
		return nil, err
	}
	p.watch.note(at, tasks, missing)
	for _, t := range tasks {
		if pods[aws.ToString(t.TaskArn)] != nil || p.wanted(t) {
			out = append(out, t)
		}
	}
	p.forget(halted)
	p.learn(tasks)
	p.leftovers.keep(halted)
	p.prober.only(p.cache.All())
	return out, nil
}

// wanted reports whether a task that nobody created since the start is one of a pod. What has ended is none unless the cluster has the pod.
func (p *provider) wanted(t ecstypes.Task) bool {
	id, ours := p.identify(t)
	switch stopped := t.StopCode == ecstypes.TaskStopCodeUserInitiated && aws.ToString(t.StoppedReason) == deleted; {
	case !ended(t):
		return ours
	case ours && !stopped && p.podOf(id) != nil:
		return true
	case ours && !stopped: // the cluster may get to know it yet
	default:
		p.watch.mu.Lock()
		defer p.watch.mu.Unlock()
		p.watch.others[aws.ToString(t.TaskArn)] = true
	}
	return false
}

// foreign reports whether a task has ended and is none of a pod of this node.
func (p *provider) foreign(arn string) bool {
	p.watch.mu.Lock()
	defer p.watch.mu.Unlock()
	return p.watch.others[arn]
}

// forget drops what is known of foreign tasks that ECS has forgotten.
func (p *provider) forget(halted []string) {
	p.watch.mu.Lock()
	defer p.watch.mu.Unlock()
	there := map[string]bool{}
	for _, arn := range halted {
		there[arn] = true
	}
	for arn := range p.watch.others {
		if !there[arn] {
			delete(p.watch.others, arn)
		}
	}
}

// identify says which pod a task is, by its tags.
func (p *provider) identify(t ecstypes.Task) (poll.Identity, bool) {
	pod, ours := p.mapping.owner.Owned(tagsOf(t))
	return poll.Identity{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ID: aws.ToString(t.TaskArn), CreatedAt: aws.ToTime(t.CreatedAt),
	}, ours
}

func tagsOf(t ecstypes.Task) map[string]string {
	tags := map[string]string{}
	for _, tag := range t.Tags {
		tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	return tags
}

// had reports whether the cluster has a pod whose status is of a task.
func (p *provider) had(namespace, name string) bool {
	if p.in.Pods == nil {
		return false
	}
	pod, err := p.in.Pods.Pods(namespace).Get(name)
	return err == nil && pod.Status.StartTime != nil
}

// podOf returns the pod as the cluster has it, nil if it has another one or none.
func (p *provider) podOf(id poll.Identity) *corev1.Pod {
	if p.in.Pods == nil {
		return nil
	}
	pod, err := p.in.Pods.Pods(id.Namespace).Get(id.Name)
	if err != nil || identity.Of(pod).UID != id.UID {
		return nil
	}
	return pod
}
