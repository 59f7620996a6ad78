// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/crilog"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/stream"
)

// requests serves kubectl logs, exec, attach and port-forward.
type requests struct {
	workers *workers
	logs    *crilog.Dir
	streams *stream.Streams
}

// readLogs returns the log of a container.
func (r *requests) readLogs(ctx context.Context, namespace, podName, containerName string, opts api.ContainerLogOpts) (io.ReadCloser, error) {
	last, pod, err := r.workers.shownPod(namespace, podName)
	if err != nil {
		return nil, err
	}
	id, err := loggedInstance(pod, containerName, opts.Previous)
	if err != nil {
		return nil, err
	}
	inst, has := last.findInstance(containerName, id)
	if !has || inst.log == "" {
		return nil, errdefs.NotFoundf("the log of container %q of pod %q is not there any more", containerName, podName)
	}
	return r.logs.Read(ctx, inst.log, opts, func() bool {
		now, has := last.findInstance(containerName, id)
		return has && now.running
	})
}

// loggedInstance returns the ID of the instance for a log request.
func loggedInstance(pod *corev1.Pod, name string, previous bool) (string, error) {
	s := statusNamed(pod, name)
	switch {
	case s == nil && len(pod.Spec.Containers) > 0 && containerNamed(pod, name) == nil:
		return "", errdefs.NotFoundf("container %q is not in pod %q", name, pod.Name)
	case s == nil: // the pod is only known from a sandbox, and its containers are not known yet
		return "", errdefs.InvalidInputf("container %q in pod %q is not available", name, pod.Name)
	}
	before := ""
	if t := s.LastTerminationState.Terminated; t != nil {
		before = t.ContainerID
	}
	switch {
	case previous && before == "":
		return "", errdefs.InvalidInputf("previous terminated container %q in pod %q not found", name, pod.Name)
	case previous:
		return trimScheme(before), nil
	case s.State.Running != nil:
		return trimScheme(s.ContainerID), nil
	case s.State.Terminated != nil && s.State.Terminated.ContainerID != "":
		return trimScheme(s.State.Terminated.ContainerID), nil
	case before != "":
		return trimScheme(before), nil
	case s.State.Terminated != nil || s.LastTerminationState.Terminated != nil:
		return "", errdefs.InvalidInputf("container %q in pod %q is terminated", name, pod.Name)
	}
	why := "no logs yet"
	if s.State.Waiting != nil {
		switch why = s.State.Waiting.Reason; why {
		case "ErrImagePull":
			why = "image can't be pulled"
		case "ImagePullBackOff":
			why = "trying and failing to pull image"
		}
	}
	return "", errdefs.InvalidInputf("container %q in pod %q is waiting to start: %s", name, pod.Name, why)
}

// trimScheme returns a container ID without the name of the runtime.
func trimScheme(id string) string {
	_, after, _ := strings.Cut(id, "://")
	return after
}

func statusNamed(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	s := &pod.Status
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// runCommand runs a command in a container.
func (r *requests) runCommand(ctx context.Context, namespace, podName, containerName string, cmd []string, attach api.AttachIO) error {
	last, _, err := r.workers.shownPod(namespace, podName)
	if err != nil {
		return err
	}
	inst, runs := last.runningInstances()[containerName]
	if !runs {
		return errdefs.NotFoundf("container not found (%q)", containerName)
	}
	return r.streams.Exec(ctx, inst.id, cmd, attach)
}

// attachContainer copies between the main process of a container and attach.
func (r *requests) attachContainer(ctx context.Context, namespace, podName, containerName string, attach api.AttachIO) error {
	last, pod, err := r.workers.shownPod(namespace, podName)
	if err != nil {
		return err
	}
	inst, runs := last.runningInstances()[containerName]
	c := containerNamed(pod, containerName)
	if !runs || c == nil {
		return errdefs.NotFoundf("container %s not found in pod %s/%s", containerName, namespace, podName)
	}
	return r.streams.Attach(ctx, inst.id, c.TTY, attach)
}

// forwardPort copies between a port of a pod and stream.
func (r *requests) forwardPort(ctx context.Context, namespace, pod string, port int32, conn io.ReadWriteCloser) error {
	last, p, err := r.workers.shownPod(namespace, pod)
	if err != nil {
		return err
	}
	sandbox := last.readySandbox()
	if sandbox == "" {
		return errdefs.NotFoundf("pod %s/%s has no sandbox that is ready", namespace, pod)
	}
	return r.streams.PortForward(ctx, stream.Target{SandboxID: sandbox, HostNetwork: p.Spec.HostNetwork, IP: p.Status.PodIP}, port, conn)
}
