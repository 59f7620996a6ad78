// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// jobs runs the pods of jobs at a runner, and passes the reports about each pod to its job.
type jobs struct {
	runner nodeutil.Provider

	mu      sync.Mutex
	reports map[string]chan *corev1.Pod // guarded by mu; running jobs by their IDs, which are also the names of their pods
}

func newJobs(runner nodeutil.Provider) *jobs {
	return &jobs{runner: runner, reports: map[string]chan *corev1.Pod{}}
}

// takeReport passes a report of the runner to the job of its pod.
func (j *jobs) takeReport(pod *corev1.Pod) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if reports := j.reports[pod.Name]; reports != nil {
		reports <- pod
	}
}

// startPod starts a pod with the ID of its job as its name. endPod stops the pod, and ends the reports.
func (j *jobs) startPod(ctx context.Context, pod *corev1.Pod) (_ <-chan *corev1.Pod, endPod func(), _ error) {
	reports := make(chan *corev1.Pod, 8) // at most four: one for each state
	j.mu.Lock()
	j.reports[pod.Name] = reports
	j.mu.Unlock()
	forget := func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		delete(j.reports, pod.Name)
	}
	if err := j.runner.CreatePod(ctx, pod); err != nil {
		forget()
		return nil, nil, err
	}
	return reports, func() {
		j.stopPod(pod)
		forget()
	}, nil
}

// stopPod stops a pod at the runner, unless it is gone.
func (j *jobs) stopPod(pod *corev1.Pod) {
	pod = pod.DeepCopy()
	pod.DeletionTimestamp = new(metav1.Now())
	_ = j.runner.DeletePod(context.Background(), pod) // the pod may be gone
}

// hasEnded reports whether a report is the last one of its pod.
func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
