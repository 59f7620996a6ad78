// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/batch/azbatch"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/pack"
)

// List implements service.Driver. It lists tasks before it reads statuses, so the status of an ended task is the
// last one.
func (d *driver) List(ctx context.Context) ([]instance, error) {
	all, err := d.client.listTasks(ctx, d.job)
	if err != nil && !errdefs.IsNotFound(err) { // without the job, there are no tasks
		return nil, err
	}
	tasks := map[types.UID]taskState{}
	for _, t := range all {
		if pod, ours := identifyTask(d.owner, t); ours {
			tasks[pod.UID] = taskState{t, pod}
		}
	}
	d.mu.Lock()
	d.tasks = tasks
	maps.DeleteFunc(d.lost, func(uid types.UID, _ string) bool { _, is := tasks[uid]; return !is })
	none := len(tasks) == 0
	d.mu.Unlock()
	if none {
		return nil, nil
	}
	if err := d.pods.Read(ctx, d.hasTask); err != nil {
		return nil, err
	}
	if err := d.findLost(ctx); err != nil {
		return nil, err
	}
	d.explainWaits(ctx)
	return d.knownInstances(), nil
}

// Changed implements service.ChangeLister. Running tasks only need their statuses.
func (d *driver) Changed(ctx context.Context, _ time.Time) ([]instance, error) {
	d.mu.Lock()
	settled, any := true, len(d.tasks) > 0
	for uid := range d.tasks {
		settled = settled && d.pods.Said(uid) != nil
	}
	d.mu.Unlock()
	switch {
	case !any:
		return nil, nil
	case !settled:
		return d.List(ctx)
	}
	if err := d.pods.Read(ctx, d.hasTask); err != nil {
		return nil, err
	}
	return d.knownInstances(), nil
}

// hasTask reports whether a pod has a task.
func (d *driver) hasTask(uid types.UID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, has := d.tasks[uid]
	return has
}

// findLost finds pods whose task Batch runs again after the pod has started. It stops the first run, which may still exist.
func (d *driver) findLost(ctx context.Context) error {
	for _, i := range d.knownInstances() {
		info := i.task.ExecutionInfo
		again := info != nil && (valueOf(info.RequeueCount) > 0 || valueOf(info.RetryCount) > 0)
		if i.lost != "" || i.said == nil || i.said.Ended || !again && claimedBefore(i.task) == "" {
			continue
		}
		if hasBegun(i.task, i.said) {
			continue
		}
		now, err := d.client.readTask(ctx, d.job, taskID(i.pod.UID)) // the list is older than the status
		switch {
		case errdefs.IsNotFound(err), err == nil && hasBegun(now, i.said):
			continue
		case err != nil:
			return err
		}
		reason := reasonNodeLost
		state, err := d.client.nodeState(ctx, d.config.Pool, i.said.Host)
		if err != nil {
			return err
		}
		if state == azbatch.NodeStatePreempted {
			reason = reasonPreempted
		}
		if err := d.pods.Order(ctx, i.pod.UID, podjob.Stop{Until: time.Now()}); err != nil {
			return err
		}
		d.mu.Lock()
		d.lost[i.pod.UID] = reason
		d.mu.Unlock()
	}
	return nil
}

// knownInstances returns the known instances. It releases a stopping pod that has ended or whose time has expired.
func (d *driver) knownInstances() (all []instance) {
	var over []types.UID
	d.mu.Lock()
	for uid, t := range d.tasks {
		i := instance{pod: t.pod, task: t.Task, said: d.pods.Said(uid), lost: d.lost[uid], waits: d.waits}
		all = append(all, i)
		if until, stops := d.stopping[uid]; stops && (hasEnded(i) || time.Now().After(until)) {
			over = append(over, uid)
			delete(d.stopping, uid)
		}
	}
	d.mu.Unlock()
	for _, uid := range over {
		d.kit.Leave(string(uid))
	}
	return all
}

// Find implements service.Driver.
func (d *driver) Find(ctx context.Context, pod *corev1.Pod) (instance, bool, error) {
	t, err := d.client.readTask(ctx, d.job, taskID(pod.UID))
	if errdefs.IsNotFound(err) {
		return instance{}, false, nil
	}
	if err != nil {
		return instance{}, false, err
	}
	return d.trackTask(pod, t), true, nil
}

// trackTask records the task of a pod.
func (d *driver) trackTask(pod *corev1.Pod, t azbatch.Task) instance {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := identity.Of(pod)
	d.tasks[pod.UID] = taskState{t, of}
	return instance{pod: of, task: t, said: d.pods.Said(pod.UID), lost: d.lost[pod.UID], waits: d.waits}
}

// Refuse implements service.Refuser.
func (d *driver) Refuse(pod *corev1.Pod) error { return d.config.refusePod(pod) }

// Create implements service.Driver. The ID of the task comes from the pod, so a repeated create finds the first
// task.
func (d *driver) Create(ctx context.Context, in *service.Inputs) (instance, error) {
	pod := in.Pod
	m, err := d.poolMachines(ctx)
	if err != nil {
		return instance{}, service.NotMade(err)
	}
	slots, err := m.slotsOf(pod)
	if err != nil {
		return instance{}, err
	}
	program, err := d.pods.Upload(ctx, d.config.Program)
	if err == nil {
		err = d.kit.Keep(ctx, string(pod.UID))
	}
	if err == nil {
		err = d.writeBundle(ctx, in)
	}
	if err != nil {
		return instance{}, service.NotMade(err)
	}
	content := d.taskContent(pod, program, slots)
	err = d.client.createTask(ctx, d.job, content)
	if azlogin.CodeOf(err) == "JobNotFound" {
		if err = d.client.createJob(ctx, d.jobContent()); err != nil {
			return instance{}, service.NotMade(err)
		}
		err = d.client.createTask(ctx, d.job, content)
	}
	switch {
	case azlogin.CodeOf(err) == "TaskExists":
	case azlogin.Answered(err):
		return instance{}, service.NotMade(err)
	case err != nil:
		return instance{}, err
	}
	return d.trackTask(pod, azbatch.Task{ID: content.ID, DisplayName: content.DisplayName, State: new(azbatch.TaskStateActive)}), nil
}

// writeBundle writes the inputs of a pod's task.
func (d *driver) writeBundle(ctx context.Context, in *service.Inputs) error {
	b, err := pack.Bundle(ctx, in, d.in, d.config.runtimeName())
	if err != nil {
		return err
	}
	b.DeviceKind = string(d.config.GPUs.Resource)
	for _, list := range [][]corev1.Container{b.Pod.Spec.InitContainers, b.Pod.Spec.Containers} {
		for i := range list {
			if image, err := podspec.RegistryImage(list[i].Image); err == nil {
				list[i].Image = image
			}
		}
	}
	return d.pods.Write(ctx, in.Pod.UID, b)
}

// Renew implements service.Renewer. It writes the current files of the pod's mounts, as long as the task runs.
func (d *driver) Renew(ctx context.Context, in *service.Inputs, i instance) error {
	if hasEnded(i) {
		return nil
	}
	now, err := d.kit.Inputs(ctx, in.Pod)
	if err != nil {
		return err
	}
	err = d.writeBundle(ctx, now)
	in.RenewAt = now.RenewAt
	d.mu.Lock()
	until, stops := d.stopping[i.pod.UID]
	d.mu.Unlock()
	if stops { // the new bundle may lack the order
		err = errors.Join(err, d.orderStop(ctx, i.pod.UID, until))
	}
	return err
}

// Update implements service.Updater. It writes changed files of the pod's mounts.
func (d *driver) Update(ctx context.Context, pod *corev1.Pod, i instance) error {
	return d.Renew(ctx, &service.Inputs{Pod: pod}, i)
}

// Stop implements service.Driver. The first call gives a running pod its grace period; a second call gives it no
// more time.
func (d *driver) Stop(ctx context.Context, pod *corev1.Pod, i instance) error {
	uid := i.pod.UID
	if i.said == nil && !hasEnded(i) { // the pod may have started in the meantime
		t, err := d.client.readTask(ctx, d.job, taskID(uid))
		if err != nil {
			return err
		}
		i.task = t
	}
	if state := valueOf(i.task.State); hasEnded(i) || i.said == nil && state == azbatch.TaskStateActive {
		d.kit.Leave(string(uid))
		return nil
	}
	grace := podspec.Grace(pod)
	until := time.Now().Add(grace + endTime)
	d.mu.Lock()
	before, stops := d.stopping[uid]
	if stops && before.Before(until) {
		until = before
	}
	d.stopping[uid] = until
	d.mu.Unlock()
	if own := pod.Spec.TerminationGracePeriodSeconds; !stops && own != nil && time.Duration(*own)*time.Second == grace {
		d.pods.Release(uid) // Work sends the orders of many pods with one request
		return nil
	}
	return d.orderStop(ctx, uid, until)
}

// orderStop gives a pod the order to stop. The grace period ends endTime before until.
func (d *driver) orderStop(ctx context.Context, uid types.UID, until time.Time) error {
	grace := max(0, time.Until(until)-endTime).Round(time.Second)
	return d.pods.Order(ctx, uid, podjob.Stop{GraceSeconds: int64(grace / time.Second), Until: until})
}

// Remove implements service.Remover. It removes the task of a pod. Work removes the blobs later.
func (d *driver) Remove(ctx context.Context, uid string) error {
	err := d.client.deleteTask(ctx, d.job, taskID(types.UID(uid)))
	if err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	d.mu.Lock()
	delete(d.tasks, types.UID(uid))
	d.mu.Unlock()
	d.pods.Leave(types.UID(uid))
	return nil
}

// Gone implements service.Mourner. It removes the blobs of a pod without a task.
func (d *driver) Gone(pod *corev1.Pod) { d.pods.Leave(pod.UID) }

// Work implements service.Worker. It sends orders to stop, removes the blobs of removed pods, and reports the
// resources of the pool.
func (d *driver) Work(ctx context.Context) {
	orders, sweep, pool := time.NewTicker(d.at.look/3), time.NewTicker(d.at.sweep), time.NewTicker(d.at.pool)
	defer orders.Stop()
	defer sweep.Stop()
	defer pool.Stop()
	for swept, failing := false, false; ; {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-orders.C:
			err = d.pods.Flush(ctx)
		case <-pool.C:
			if m, err := d.poolMachines(ctx); err == nil { // the service's outages show in List
				d.kit.Offer(m.offeredResources())
			}
			continue
		case <-sweep.C:
			known := d.kit.Knows
			if swept || !d.kit.Cache().Complete() {
				known = nil // the leftovers of an earlier process are removed once
			}
			err = d.pods.Sweep(ctx, known)
			swept = swept || known != nil && err == nil
		}
		if err != nil && !failing && ctx.Err() == nil {
			log.G(ctx).WithError(err).Warn("Pods do not have their orders to stop, or blobs of pods that are gone are not removed: it is tried again")
		}
		failing = err != nil
	}
}

// Identify implements service.Driver.
func (d *driver) Identify(i instance) (poll.Identity, bool) {
	return poll.Identity{Namespace: i.pod.Namespace, Name: i.pod.Name, UID: i.pod.UID, ID: taskID(i.pod.UID)}, true
}

// Ended implements service.Ender.
func (d *driver) Ended(i instance) bool { return hasEnded(i) }

// Status implements service.Driver.
func (d *driver) Status(pod *corev1.Pod, i instance) corev1.PodStatus {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return pod.Status // the status is final
	}
	s := statusOf(pod, i)
	s.QOSClass = pod.Status.QOSClass
	return s
}
