// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
)

// GetContainerLogs implements nodeutil.Provider.
func (p *Provider[T]) GetContainerLogs(ctx context.Context, namespace, name, container string, opts api.ContainerLogOpts) (io.ReadCloser, error) {
	of, err := p.target(ctx, namespace, name, container)
	if err != nil {
		return nil, err
	}
	reader, ok := p.driver.(LogReader[T])
	if !ok {
		return nil, p.lacks(of, Logs)
	}
	if !p.config.LogsUnseen {
		if err := hasLog(of, opts.Previous); err != nil {
			return nil, err
		}
	}
	return reader.Logs(ctx, of, opts)
}

// hasLog returns an error for the log of a container that has not started.
func hasLog[T any](of Target[T], previous bool) error {
	s := of.State
	switch {
	case previous && (s == nil || s.RestartCount == 0):
		return errdefs.NotFoundf("pod %s/%s: container %s has not run before", of.Pod.Namespace, of.Pod.Name, of.Container)
	case !previous && (s == nil || s.State.Running == nil && s.State.Terminated == nil && s.LastTerminationState.Terminated == nil):
		return errdefs.NotFoundf("pod %s/%s: container %s has not begun", of.Pod.Namespace, of.Pod.Name, of.Container)
	}
	return nil
}

// RunInContainer implements nodeutil.Provider.
func (p *Provider[T]) RunInContainer(ctx context.Context, namespace, name, container string, command []string, attach api.AttachIO) error {
	in, err := p.target(ctx, namespace, name, container)
	if err != nil {
		return err
	}
	e, ok := p.driver.(Executor[T])
	if !ok {
		return p.lacks(in, Exec)
	}
	if err := in.isRunning(); err != nil {
		return err
	}
	return e.Exec(ctx, in, command, attach)
}

// AttachToContainer implements nodeutil.Provider.
func (p *Provider[T]) AttachToContainer(ctx context.Context, namespace, name, container string, attach api.AttachIO) error {
	to, err := p.target(ctx, namespace, name, container)
	if err != nil {
		return err
	}
	a, ok := p.driver.(Attacher[T])
	if !ok {
		return p.lacks(to, Attach)
	}
	if err := to.isRunning(); err != nil {
		return err
	}
	return a.Attach(ctx, to, attach)
}

// PortForward implements nodeutil.Provider.
func (p *Provider[T]) PortForward(ctx context.Context, namespace, name string, port int32, stream io.ReadWriteCloser) error {
	pod, instance, err := p.find(ctx, namespace, name)
	if err != nil {
		return err
	}
	to := Target[T]{Pod: pod, Instance: instance}
	f, ok := p.driver.(Forwarder[T])
	if !ok {
		return p.lacks(to, PortForward)
	}
	if err := f.Forward(ctx, to, port, stream); err != nil {
		return fmt.Errorf("port %d of pod %s/%s: %w", port, namespace, name, err)
	}
	return nil
}

// GetStatsSummary implements nodeutil.Provider. Without a Measurer it has the node only.
func (p *Provider[T]) GetStatsSummary(ctx context.Context) (*statsv1alpha1.Summary, error) {
	out := &statsv1alpha1.Summary{Node: statsv1alpha1.NodeStats{NodeName: p.config.Owner.Node}}
	m, ok := p.driver.(Measurer[T])
	if !ok {
		return out, nil
	}
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	var of []Target[T]
	for _, pod := range p.cache.All() {
		if _, instance, ok := p.cache.Get(pod.UID); ok {
			of = append(of, Target[T]{Pod: pod, Instance: instance})
		}
	}
	var err error
	out.Pods, err = m.Stats(ctx, of)
	return out, err
}

// PodStats returns the stats of a pod for a Measurer, with its running containers. measure sets the known CPU and memory usage of a
// container; the pod has their sums.
func PodStats(pod *corev1.Pod, measure func(*statsv1alpha1.ContainerStats)) statsv1alpha1.PodStats {
	out := statsv1alpha1.PodStats{PodRef: statsv1alpha1.PodReference{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID)}}
	if pod.Status.StartTime != nil {
		out.StartTime = *pod.Status.StartTime
	}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) { // sidecars are init containers
		if s.State.Running == nil {
			continue
		}
		c := statsv1alpha1.ContainerStats{Name: s.Name, StartTime: s.State.Running.StartedAt}
		measure(&c)
		if c.CPU != nil && c.CPU.UsageNanoCores != nil {
			if out.CPU == nil {
				out.CPU = &statsv1alpha1.CPUStats{UsageNanoCores: new(uint64)}
			}
			out.CPU.Time = c.CPU.Time
			*out.CPU.UsageNanoCores += *c.CPU.UsageNanoCores
		}
		if c.Memory != nil && c.Memory.UsageBytes != nil {
			if out.Memory == nil {
				sum := new(uint64)
				out.Memory = &statsv1alpha1.MemoryStats{UsageBytes: sum, WorkingSetBytes: sum}
			}
			out.Memory.Time = c.Memory.Time
			*out.Memory.UsageBytes += *c.Memory.UsageBytes
		}
		out.Containers = append(out.Containers, c)
	}
	return out
}

// GetMetricsResource implements nodeutil.Provider. It returns nothing: services provide averages at most, and
// these metrics are counters.
func (p *Provider[T]) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) {
	return nil, nil
}

// target returns a container of a pod.
func (p *Provider[T]) target(ctx context.Context, namespace, name, container string) (Target[T], error) {
	pod, instance, err := p.find(ctx, namespace, name)
	if err != nil {
		return Target[T]{}, err
	}
	t := Target[T]{Pod: pod, Instance: instance, Container: container, State: StateOf(pod, container)}
	if t.State == nil && !hasContainer(pod, container) {
		return t, errdefs.NotFoundf("pod %s/%s has no container %s", namespace, name, container)
	}
	return t, nil
}

func hasContainer(pod *corev1.Pod, name string) bool {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return true
			}
		}
	}
	return false
}

// RereadLog returns the log of a container from a service without a stream; see logs.Reread. read returns the newest lines, from
// since or earlier. A followed log ends with the run.
func (p *Provider[T]) RereadLog(ctx context.Context, of Target[T], opts api.ContainerLogOpts, every time.Duration, read func(ctx context.Context, since time.Time) ([]logs.Line, error)) (io.ReadCloser, error) {
	return logs.Reread{
		Every: every,
		Ended: func() bool { return opts.Previous || p.RunEnded(of) },
		Read:  func(ctx context.Context, since time.Time, _ bool) ([]logs.Line, error) { return read(ctx, since) },
	}.Open(ctx, opts, time.Now())
}

// RunEnded reports whether the targeted run of a container is over, according to the lists. It is for a followed
// log.
func (p *Provider[T]) RunEnded(of Target[T]) bool {
	pod, _, ok := p.cache.Get(of.Pod.UID)
	if !ok {
		return true
	}
	c := StateOf(pod, of.Container)
	if c == nil || of.State == nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	return c.RestartCount != of.State.RestartCount || c.State.Terminated != nil || of.State.State.Running != nil && c.State.Running == nil // the container waits for its next run
}

// lacks returns the error for a request that the service does not support.
func (p *Provider[T]) lacks(of Target[T], request Request) error {
	err := fmt.Sprintf("pod %s/%s: %s has no %s", of.Pod.Namespace, of.Pod.Name, p.config.Service, request)
	if instead := p.config.Instead[request]; instead != "" {
		err += ": " + instead
	}
	return errdefs.InvalidInput(err)
}
