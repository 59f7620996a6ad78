// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// provider keeps pods in memory and reports each change at once. Its responses to kubectl are in requests.go.
type provider struct {
	notify func(*corev1.Pod) // set before any other call

	mu   sync.Mutex
	pods map[string]*corev1.Pod // by namespace/name; guarded by mu
}

var (
	_ nodeutil.Provider = (*provider)(nil)
	_ node.PodNotifier  = (*provider)(nil)
)

// NotifyPods stores the function that receives changed pods.
func (p *provider) NotifyPods(_ context.Context, notify func(*corev1.Pod)) { p.notify = notify }

// CreatePod "starts" the pod: its containers are running from now on.
func (p *provider) CreatePod(_ context.Context, pod *corev1.Pod) error {
	now := metav1.Now()
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now, PodIP: "192.0.2.1"}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name:        c.Name,
			Image:       c.Image,
			ContainerID: "memory://" + string(pod.UID) + "/" + c.Name,
			Ready:       true,
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	p.set(pod)
	return nil
}

// UpdatePod stores the new labels and annotations.
func (p *provider) UpdatePod(_ context.Context, pod *corev1.Pod) error {
	p.mu.Lock()
	known, err := p.findPod(pod)
	if err == nil {
		pod.Status = known.Status
		p.pods[pod.Namespace+"/"+pod.Name] = pod
	}
	p.mu.Unlock()
	if err != nil {
		return err
	}
	p.notify(pod)
	return nil
}

// findPod returns the pod with this UID. A pod with the same name and another UID is another pod. The caller holds mu.
func (p *provider) findPod(pod *corev1.Pod) (*corev1.Pod, error) {
	known, ok := p.pods[pod.Namespace+"/"+pod.Name]
	if !ok || known.UID != pod.UID {
		return nil, errdefs.NotFoundf("pod %s/%s with the UID %s is not known", pod.Namespace, pod.Name, pod.UID)
	}
	return known, nil
}

func (p *provider) set(pod *corev1.Pod) {
	p.mu.Lock()
	p.pods[pod.Namespace+"/"+pod.Name] = pod
	p.mu.Unlock()
	p.notify(pod)
}

// DeletePod "stops" the pod and reports that its containers have ended.
func (p *provider) DeletePod(_ context.Context, pod *corev1.Pod) error {
	p.mu.Lock()
	stopped, err := p.findPod(pod)
	if err == nil {
		delete(p.pods, pod.Namespace+"/"+pod.Name)
	}
	p.mu.Unlock()
	if err != nil {
		return err
	}

	stopped = stopped.DeepCopy()
	stopped.Status.Phase = corev1.PodSucceeded
	for i := range stopped.Status.ContainerStatuses {
		c := &stopped.Status.ContainerStatuses[i]
		ended := &corev1.ContainerStateTerminated{Reason: "Stopped", FinishedAt: metav1.Now()}
		if c.State.Running != nil {
			ended.StartedAt = c.State.Running.StartedAt
		}
		c.Ready, c.State = false, corev1.ContainerState{Terminated: ended}
	}
	p.notify(stopped)
	return nil
}

// GetPod returns a copy of a pod.
func (p *provider) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pod, ok := p.pods[namespace+"/"+name]
	if !ok {
		return nil, errdefs.NotFoundf("pod %s/%s is not known", namespace, name)
	}
	return pod.DeepCopy(), nil
}

// GetPodStatus returns the status of a pod.
func (p *provider) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods returns copies of all pods.
func (p *provider) GetPods(context.Context) ([]*corev1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*corev1.Pod, 0, len(p.pods))
	for _, pod := range p.pods {
		all = append(all, pod.DeepCopy())
	}
	return all, nil
}
