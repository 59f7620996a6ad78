// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// errNoStreams is the error of requests that this backend does not support. This example has no server, so there are no such requests.
var errNoStreams = errdefs.InvalidInput("this backend has no logs, exec or port-forward")

// provider simulates a batch service: jobs are submitted, take a while to start, and must be polled.
type provider struct {
	startUp time.Duration // start time of a job

	mu   sync.Mutex
	jobs map[string]*job // by namespace/name; guarded by mu
}

// job is a pod in the service.
type job struct {
	pod       *corev1.Pod
	submitted time.Time
}

var _ nodeutil.Provider = (*provider)(nil)

// CreatePod submits a job. A second call for the same pod does not start it again.
func (p *provider) CreatePod(_ context.Context, pod *corev1.Pod) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := pod.Namespace + "/" + pod.Name
	if known, ok := p.jobs[key]; ok && known.pod.UID == pod.UID {
		return nil
	}
	p.jobs[key] = &job{pod: pod, submitted: time.Now()}
	return nil
}

// UpdatePod accepts changes of labels and annotations, which the service does not have.
func (p *provider) UpdatePod(_ context.Context, pod *corev1.Pod) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.checkJob(pod)
}

// DeletePod cancels a job.
func (p *provider) DeletePod(_ context.Context, pod *corev1.Pod) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.checkJob(pod); err != nil {
		return err
	}
	delete(p.jobs, pod.Namespace+"/"+pod.Name)
	return nil
}

// checkJob returns an error if the service has no job of the pod. A job with the same name and another UID belongs to another pod. The caller holds
// mu.
func (p *provider) checkJob(pod *corev1.Pod) error {
	if j, ok := p.jobs[pod.Namespace+"/"+pod.Name]; !ok || j.pod.UID != pod.UID {
		return errdefs.NotFoundf("job %s/%s of the pod with the UID %s is not known", pod.Namespace, pod.Name, pod.UID)
	}
	return nil
}

// GetPod returns the pod of a job with its current status.
func (p *provider) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	j, ok := p.jobs[namespace+"/"+name]
	if !ok {
		return nil, errdefs.NotFoundf("job %s/%s is not known", namespace, name)
	}
	return p.observeJob(j, time.Now()), nil
}

// GetPodStatus returns the status of a job. Polling calls it.
func (p *provider) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods returns the pods of all jobs.
func (p *provider) GetPods(context.Context) ([]*corev1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	all := make([]*corev1.Pod, 0, len(p.jobs))
	for _, j := range p.jobs {
		all = append(all, p.observeJob(j, now))
	}
	return all, nil
}

// observeJob computes the current state of a job.
func (p *provider) observeJob(j *job, now time.Time) *corev1.Pod {
	pod := j.pod.DeepCopy()
	started := metav1.NewTime(j.submitted.Add(p.startUp))
	running := !now.Before(started.Time)
	state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, StartTime: &metav1.Time{Time: j.submitted}}
	if running {
		pod.Status.Phase = corev1.PodRunning
		state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}}
	}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ContainerID: containerID(pod, c.Name, running), Ready: running, State: state,
		})
	}
	return pod
}

// containerID returns the ID of a container, which has an ID when it is running.
func containerID(pod *corev1.Pod, container string, running bool) string {
	if !running {
		return ""
	}
	return "job://" + string(pod.UID) + "/" + container
}

// GetContainerLogs is not supported.
func (*provider) GetContainerLogs(context.Context, string, string, string, api.ContainerLogOpts) (io.ReadCloser, error) {
	return nil, errNoStreams
}

// RunInContainer is not supported.
func (*provider) RunInContainer(context.Context, string, string, string, []string, api.AttachIO) error {
	return errNoStreams
}

// AttachToContainer is not supported.
func (*provider) AttachToContainer(context.Context, string, string, string, api.AttachIO) error {
	return errNoStreams
}

// PortForward is not supported.
func (*provider) PortForward(context.Context, string, string, int32, io.ReadWriteCloser) error {
	return errNoStreams
}

// GetStatsSummary returns no statistics.
func (*provider) GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error) {
	return &statsv1alpha1.Summary{}, nil
}

// GetMetricsResource returns no metrics.
func (*provider) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) { return nil, nil }
