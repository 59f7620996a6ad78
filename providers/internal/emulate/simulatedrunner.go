// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// Events of the containers of a group in the journal.
const (
	began = "began" // all containers run
	ended = "ended" // the containers have exited by themselves
	gone  = "gone"  // the containers were stopped or have ended, and are removed
)

const (
	// startsAfter is the time that the containers of a group take to start, and stopsAfter the time to stop.
	// Both are much less than at a cloud.
	startsAfter, stopsAfter = 5 * time.Second, time.Second
)

var _ nodeutil.Provider = (*simulated)(nil)

// simulated runs no containers, and reports that they run.
type simulated struct {
	notify func(*corev1.Pod)
	note   func(what, id string)

	mu   sync.Mutex
	pods map[types.NamespacedName]*corev1.Pod // guarded by mu; replaced, never changed
}

// newSimulated returns a runner without pods. It reports pods to notify, and events to note.
func newSimulated(notify func(*corev1.Pod), note func(what, id string)) *simulated {
	return &simulated{notify: notify, note: note, pods: map[types.NamespacedName]*corev1.Pod{}}
}

func keyOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// CreatePod implements node.PodLifecycleHandler.
func (s *simulated) CreatePod(_ context.Context, pod *corev1.Pod) error {
	pod = pod.DeepCopy()
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, StartTime: new(metav1.Now())}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
		})
	}
	s.mu.Lock()
	s.pods[keyOf(pod)] = pod
	s.mu.Unlock()
	time.AfterFunc(startsAfter, func() { s.beginContainers(keyOf(pod)) })
	return nil
}

// beginContainers marks the containers as running.
func (s *simulated) beginContainers(key types.NamespacedName) {
	s.changePod(key, began, func(pod *corev1.Pod) bool {
		if pod.Status.Phase != corev1.PodPending || pod.DeletionTimestamp != nil {
			return false
		}
		pod.Status.Phase = corev1.PodRunning
		for i := range pod.Status.ContainerStatuses {
			c := &pod.Status.ContainerStatuses[i]
			c.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
			c.Ready, c.Started, c.ContainerID = true, new(true), "simulated://"+pod.Name+"/"+c.Name
		}
		return true
	})
}

// endContainers marks the containers of a group as exited with code 0. shown converts the name of a group at the runner to id.
func (s *simulated) endContainers(id string, shown func(string) string) {
	s.mu.Lock()
	var found types.NamespacedName
	for key := range s.pods {
		if shown(key.Name) == id {
			found = key
		}
	}
	s.mu.Unlock()
	s.changePod(found, ended, func(pod *corev1.Pod) bool {
		if pod.Status.Phase != corev1.PodRunning {
			return false
		}
		recordExit(pod, 0, corev1.PodSucceeded)
		return true
	})
}

// recordExit records that running containers have exited.
func recordExit(pod *corev1.Pod, code int32, phase corev1.PodPhase) {
	pod.Status.Phase = phase
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		t := &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Completed", FinishedAt: metav1.Now(), ContainerID: c.ContainerID}
		if code != 0 {
			t.Reason = "Error"
		}
		if c.State.Running != nil {
			t.StartedAt = c.State.Running.StartedAt
		}
		if c.State.Terminated == nil {
			c.State = corev1.ContainerState{Terminated: t}
		}
		c.Ready, c.Started = false, new(false)
	}
}

// changePod replaces a pod, reports it and records the event, if do reports a change.
func (s *simulated) changePod(key types.NamespacedName, what string, do func(*corev1.Pod) bool) {
	s.mu.Lock()
	pod := s.pods[key]
	if pod == nil {
		s.mu.Unlock()
		return
	}
	pod = pod.DeepCopy()
	if !do(pod) {
		s.mu.Unlock()
		return
	}
	s.pods[key] = pod
	s.mu.Unlock()
	s.note(what, key.Name)
	s.notify(pod)
}

// UpdatePod implements node.PodLifecycleHandler: groups do not change.
func (s *simulated) UpdatePod(context.Context, *corev1.Pod) error { return nil }

// DeletePod implements node.PodLifecycleHandler.
func (s *simulated) DeletePod(_ context.Context, pod *corev1.Pod) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := keyOf(pod)
	is := s.pods[key]
	switch {
	case is == nil:
		return errdefs.NotFoundf("there is no pod %s", key)
	case is.DeletionTimestamp != nil:
		return nil
	}
	next := is.DeepCopy()
	next.DeletionTimestamp = pod.DeletionTimestamp
	s.pods[key] = next
	wait := stopsAfter
	if is.Status.Phase != corev1.PodRunning {
		wait = 0
	}
	time.AfterFunc(wait, func() { s.remove(key) })
	return nil
}

// remove removes a pod, with a last report.
func (s *simulated) remove(key types.NamespacedName) {
	s.mu.Lock()
	pod := s.pods[key].DeepCopy()
	if pod.Status.Phase == corev1.PodRunning {
		recordExit(pod, 143, corev1.PodFailed)
	}
	delete(s.pods, key)
	s.mu.Unlock()
	s.note(gone, key.Name)
	s.notify(pod)
}

// GetPod implements node.PodLifecycleHandler. The caller must not change the pod.
func (s *simulated) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pod := s.pods[types.NamespacedName{Namespace: namespace, Name: name}]; pod != nil {
		return pod, nil
	}
	return nil, errdefs.NotFoundf("there is no pod %s/%s", namespace, name)
}

// GetPodStatus implements node.PodLifecycleHandler.
func (s *simulated) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := s.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods implements node.PodLifecycleHandler.
func (s *simulated) GetPods(context.Context) (all []*corev1.Pod, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pod := range s.pods {
		all = append(all, pod)
	}
	return all, nil
}

// GetContainerLogs returns an empty log, because no container runs.
func (*simulated) GetContainerLogs(context.Context, string, string, string, api.ContainerLogOpts) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("")), nil
}

var errSimulated = errdefs.InvalidInput("the containers are simulated")

// RunInContainer refuses, because no container runs.
func (*simulated) RunInContainer(context.Context, string, string, string, []string, api.AttachIO) error {
	return errSimulated
}

// AttachToContainer refuses, because no container runs.
func (*simulated) AttachToContainer(context.Context, string, string, string, api.AttachIO) error {
	return errSimulated
}

// PortForward refuses, because no container runs.
func (*simulated) PortForward(context.Context, string, string, int32, io.ReadWriteCloser) error {
	return errSimulated
}

// GetStatsSummary returns no statistics.
func (*simulated) GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error) {
	return &statsv1alpha1.Summary{}, nil
}

// GetMetricsResource returns no metrics.
func (*simulated) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) { return nil, nil }
