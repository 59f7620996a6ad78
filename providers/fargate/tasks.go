// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
)

// known returns the content of the cache, and its pods by ARN.
func (d *driver) known() (all []poll.Known[ecstypes.Task], by map[string]*corev1.Pod) {
	all, by = d.kit.Cache().Known(), map[string]*corev1.Pod{}
	for _, k := range all {
		by[aws.ToString(k.Instance.TaskArn)] = k.Pod
	}
	return all, by
}

// describe requests the states of tasks, and restores the tags of stopping tasks.
func (d *driver) describe(ctx context.Context, arns []string) (tasks []ecstypes.Task, missing []string, err error) {
	tasks, missing, err = d.client.describe(ctx, arns)
	d.tagAgain(tasks)
	return tasks, missing, err
}

// tagAgain restores the tags that StopTask has deleted from tasks of this node. The ARN identifies a task that
// the cache has. The group identifies every other task, because it has the UID of a pod of the cluster.
func (d *driver) tagAgain(tasks []ecstypes.Task) {
	var cached map[string]ecstypes.Task
	var pods map[types.UID]*corev1.Pod
	for i := range tasks {
		t := &tasks[i]
		if _, ours := d.Identify(*t); ours || aws.ToString(t.StartedBy) != d.mapping.startedBy() {
			continue
		}
		if cached == nil {
			cached, pods = map[string]ecstypes.Task{}, map[types.UID]*corev1.Pod{}
			for _, k := range d.kit.Cache().Known() {
				cached[aws.ToString(k.Instance.TaskArn)] = k.Instance
			}
			for _, pod := range d.podsOfCluster() {
				pods[pod.UID] = pod
			}
		}
		uid, own := d.mapping.podOf(*t)
		if known, ok := cached[aws.ToString(t.TaskArn)]; ok {
			t.Tags = known.Tags
		} else if pod := pods[uid]; pod != nil {
			t.Tags = d.mapping.tags(identity.Of(pod), own)
		}
	}
}

// Changed implements service.ChangeLister. It describes the tasks in transition and some of the others.
func (d *driver) Changed(ctx context.Context, _ time.Time) ([]ecstypes.Task, error) {
	all, pods := d.known()
	arns := d.inquiries.next(all)
	if len(arns) == 0 {
		return nil, d.client.ping(ctx) // no task to describe: ping tells the node whether ECS works
	}
	at := time.Now()
	tasks, missing, err := d.describe(ctx, arns)
	if err != nil {
		return nil, err
	}
	for _, arn := range d.inquiries.note(at, tasks, missing) {
		if pod := pods[arn]; pod != nil && !d.kit.Cache().Unshown(pod.UID) {
			d.kit.Cache().Forget(pod.UID)
		}
	}
	d.learn(tasks)
	return tasks, nil
}

// List implements service.Driver. One list of ECS has the tasks of this node with the desired status RUNNING. Another list has all
// other tasks of the last hour, of all users. List does not describe listed tasks whose state is known.
func (d *driver) List(ctx context.Context) ([]ecstypes.Task, error) {
	all, pods := d.known()
	at := time.Now()
	live, err := d.client.started(ctx, d.mapping.startedBy())
	if err != nil {
		return nil, err
	}
	halted, err := d.client.stopped(ctx)
	if err != nil {
		return nil, err
	}
	lives, there := map[string]bool{}, map[string]bool{}
	for _, arn := range live {
		lives[arn], there[arn] = true, true
	}
	for _, arn := range halted {
		there[arn] = true
	}
	var out []ecstypes.Task
	var ask []string
	for _, k := range all {
		arn := aws.ToString(k.Instance.TaskArn)
		if ended(k.Instance) || lives[arn] && atRest(k.Instance) && !k.Stopping {
			out = append(out, k.Instance) // an ended task does not change, and ECS may forget it earlier than the cluster
		} else {
			ask = append(ask, arn)
		}
	}
	for arn := range there {
		if pods[arn] == nil && !d.inquiries.get(arn).foreign {
			ask = append(ask, arn)
		}
	}
	slices.Sort(ask)
	tasks, missing, err := d.describe(ctx, ask)
	if err != nil {
		return nil, err
	}
	d.inquiries.note(at, tasks, missing)
	for _, t := range tasks {
		if pods[aws.ToString(t.TaskArn)] != nil || d.wanted(t) {
			out = append(out, t)
		}
	}
	d.learn(tasks)
	for arn := range pods {
		there[arn] = true
	}
	d.inquiries.keep(there)
	return out, nil
}

// Find implements service.Driver. It costs a list, and a request for each hundred unknown tasks.
func (d *driver) Find(ctx context.Context, pod *corev1.Pod) (task ecstypes.Task, found bool, err error) {
	live, err := d.client.started(ctx, d.mapping.startedBy())
	if err != nil {
		return task, false, err
	}
	_, known := d.known()
	var strange []string
	for _, arn := range live {
		if known[arn] == nil {
			strange = append(strange, arn)
		}
	}
	tasks, _, err := d.describe(ctx, strange)
	for _, t := range tasks {
		if id, ours := d.Identify(t); ours && id.UID == pod.UID {
			return t, true, nil
		}
	}
	return task, false, err
}

// Stop implements service.Driver.
func (d *driver) Stop(ctx context.Context, _ *corev1.Pod, task ecstypes.Task) error {
	return d.end(ctx, task, deleted)
}

// end stops a task for a reason. It makes no request for a task that stops already.
func (d *driver) end(ctx context.Context, task ecstypes.Task, reason string) error {
	if ended(task) || aws.ToString(task.DesiredStatus) == stateStopped {
		return nil
	}
	asked := time.Now()
	said, err := d.client.stop(ctx, *task.TaskArn, reason)
	if err != nil {
		return err
	}
	said.Tags = task.Tags
	d.learn([]ecstypes.Task{said})
	d.kit.Cache().Take(ctx, asked, said)
	return nil
}

// wanted reports whether a task from before the start of this process belongs to a pod. An ended task belongs to a pod only if the
// cluster has the pod.
func (d *driver) wanted(t ecstypes.Task) bool {
	id, ours := d.Identify(t)
	switch stopped := t.StopCode == ecstypes.TaskStopCodeUserInitiated && aws.ToString(t.StoppedReason) == deleted; {
	case !ended(t):
		return ours
	case ours && !stopped: // the pod may still appear in the cluster
		return d.kit.InCluster(id) != nil
	}
	d.inquiries.set(aws.ToString(t.TaskArn), func(i *inquiry) { i.foreign = true })
	return false
}

// learn records which tasks have ended, and gives up the things of their pods. It is called with the tasks of every answer, before the
// cache gets them.
func (d *driver) learn(tasks []ecstypes.Task) {
	for _, t := range tasks {
		if !ended(t) {
			continue
		}
		id, ours := d.Identify(t)
		uid, own := d.mapping.podOf(t)
		if ours {
			uid, own = id.UID, tagsOf(t)[tagOwn] != ""
		}
		// The failure may mean that a secret was removed. Lists have the task for an hour, but the failure
		// counts once.
		if _, before, ok := d.kit.Cache().Get(id.UID); ours && ok && t.StopCode == ecstypes.TaskStopCodeTaskFailedToStart &&
			aws.ToString(before.TaskArn) == id.ID && !ended(before) {
			d.things.loseShared()
		}
		if !d.inquiries.set(aws.ToString(t.TaskArn), func(i *inquiry) { i.left = true }).left {
			d.leaveOf(t, uid, own)
		}
	}
}

// leaveOf gives up everything that belongs to the pod of an ended task alone. Shared things are removed later.
func (d *driver) leaveOf(t ecstypes.Task, uid types.UID, own bool) {
	family := familyOf(t)
	switch {
	case d.ownOf(family) != "":
		d.leave(definitionThing + family)
	case uid != "":
		d.things.useDefinition(d.sweeper.now(), family)
	}
	if !own {
		return
	}
	// The cache may not have the pod any more, and this process may not have made it.
	names := append(d.things.withPrefix(ownName(d.mapping.owner, uid)+"-"), ownName(d.mapping.owner, uid))
	if pod, _, ok := d.kit.Cache().Get(uid); ok {
		names = append(names, ownSecrets(d.mapping.owner, pod)...)
	}
	for _, name := range names {
		d.leave(name)
	}
}
