// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
)

// instance is one run of a pod. Its fields are guarded by the backend's mutex.
type instance struct {
	id        string
	pod       *corev1.Pod // never changed, only replaced
	ended     bool        // its containers have ended
	asked     bool        // it was asked to stop
	forgotten bool        // it is dropped at its end
	timers    []*time.Timer
}

func (i *instance) stopTimers() {
	for _, t := range i.timers {
		t.Stop()
	}
}

// startInstance starts an instance, even if the pod has one already.
func (b *Backend) startInstance(pod *corev1.Pod) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errClosed
	}
	i := &instance{id: fmt.Sprintf("i-%d", b.nextNumber()), pod: pod.DeepCopy()}
	i.pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
	for _, c := range pod.Spec.Containers {
		i.pod.Status.ContainerStatuses = append(i.pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
		})
	}
	key := keyOf(pod)
	b.instances[key] = append(b.instances[key], i)
	b.recordEntry(ledger.Start, "", pod, i)
	b.callAfter(i, b.times.Start, b.run)
	return nil
}

// callAfter calls a function for the instance after a while, unless the instance has ended by then.
func (b *Backend) callAfter(i *instance, d time.Duration, do func(*instance)) {
	i.timers = append(i.timers, time.AfterFunc(d, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !i.ended && !b.closed {
			do(i)
		}
	}))
}

// run sets the containers to running.
func (b *Backend) run(i *instance) {
	now := metav1.Now()
	b.set(i, func(s *corev1.PodStatus) {
		s.Phase, s.PodIP, s.StartTime = corev1.PodRunning, "192.0.2.1", &now
		for n := range s.ContainerStatuses {
			c := &s.ContainerStatuses[n]
			c.Ready, c.ContainerID = true, "ledger://"+i.id
			c.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
		}
	})
}

// endInstance ends the containers.
func (b *Backend) endInstance(i *instance, exitCode int32) {
	i.ended = true
	i.stopTimers()
	now := metav1.Now()
	b.set(i, func(s *corev1.PodStatus) {
		s.Phase = corev1.PodSucceeded
		if exitCode != 0 {
			s.Phase = corev1.PodFailed
		}
		for n := range s.ContainerStatuses {
			c := &s.ContainerStatuses[n]
			c.Ready = false
			c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: exitCode, ContainerID: c.ContainerID, FinishedAt: now,
			}}
		}
	})
	b.recordEntry(ledger.Stop, "", i.pod, i)
	if i.forgotten {
		b.dropInstance(i)
	}
}

// dropInstance forgets the instance.
func (b *Backend) dropInstance(i *instance) {
	key := keyOf(i.pod)
	left := slices.DeleteFunc(b.instances[key], func(o *instance) bool { return o == i })
	if len(left) == 0 {
		delete(b.instances, key)
		return
	}
	b.instances[key] = left
}

// set changes the status, and sends it to the watchers. The message numbers the reports, so that old and new
// reports can be told apart anywhere.
func (b *Backend) set(i *instance, change func(*corev1.PodStatus)) {
	pod := i.pod.DeepCopy()
	change(&pod.Status)
	pod.Status.Message = fmt.Sprintf("report %d", b.nextNumber())
	i.pod = pod
	b.recordEntry(ledger.Status, "", pod, i)
	for w := range b.watchers {
		w.queuePod(pod)
	}
}

// updatePod replaces the stored pod, but not its status.
func (b *Backend) updatePod(pod *corev1.Pod) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := b.instancesOf(keyOf(pod), pod.UID)
	if len(found) == 0 {
		return errdefs.NotFoundf("pod %s has no instance", pod.UID)
	}
	for _, i := range found {
		kept := pod.DeepCopy()
		kept.Status = i.pod.Status
		i.pod = kept
	}
	return nil
}

// remove starts the stop of the instance, which takes a while.
func (b *Backend) remove(pod *corev1.Pod) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := b.instancesOf(keyOf(pod), pod.UID)
	if len(found) == 0 {
		return errdefs.NotFoundf("pod %s has no instance", pod.UID)
	}
	for _, i := range found {
		if !i.ended && !i.asked {
			i.asked = true
			b.callAfter(i, b.times.Stop, func(i *instance) { b.endInstance(i, 0) })
		}
	}
	return nil
}

func (b *Backend) get(key string) (*corev1.Pod, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := b.newestInstance(key); i != nil {
		return i.pod, nil
	}
	return nil, errdefs.NotFoundf("pod %s has no instance", key)
}

func (b *Backend) list() (pods []*corev1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, list := range b.instances {
		for _, i := range list {
			pods = append(pods, i.pod)
		}
	}
	return pods
}

// Change changes the status of a running pod and sends it to the watchers. It returns false if the pod does not
// run.
func (b *Backend) Change(namespace, name string, uid types.UID, change func(*corev1.PodStatus)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, i := range b.instancesOf(namespace+"/"+name, uid) {
		if !i.ended && i.pod.Status.Phase == corev1.PodRunning {
			b.set(i, change)
			return true
		}
	}
	return false
}

// Finish ends the containers of a running pod, with the exit code. It returns false when the pod does not run.
func (b *Backend) Finish(namespace, name string, uid types.UID, exitCode int32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, i := range b.instancesOf(namespace+"/"+name, uid) {
		if !i.ended && i.pod.Status.Phase == corev1.PodRunning {
			b.endInstance(i, exitCode)
			return true
		}
	}
	return false
}
