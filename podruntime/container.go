// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/criconfig"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/image"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/probe"
)

// startContainer makes and starts an instance of a container.
func (j job) startContainer(ctx context.Context, a plan.Action) plan.Outcome {
	c := containerNamed(j.pod, a.Container)
	if c == nil || j.sandbox == nil {
		return plan.Outcome{Reason: reasonConfig, Message: "the pod has no such container or no sandbox any more"}
	}
	sandbox, err := j.exec.sandboxes.config(j.pod, j.sandbox.Attempt)
	if err != nil {
		return j.startFailure(a, "", reasonConfig, err)
	}
	img, failed := j.ensureImage(ctx, c, sandbox)
	if failed != nil {
		j.exec.events.recordContainer(j.pod, c.Name, corev1.EventTypeWarning, eventFailed, "Error: "+failed.Reason)
		return plan.Outcome{Reason: failed.Reason, Message: failed.Message, RetryAfter: failed.RetryAfter}
	}
	config, err := j.containerConfig(ctx, a, c, img)
	if err != nil {
		return j.startFailure(a, "", reasonConfig, err)
	}
	if err := j.exec.cgroups.restoreGroup(j.pod); err != nil {
		return j.startFailure(a, "", reasonCreate, err)
	}
	calls, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	id, err := j.exec.runtime.CreateContainer(calls, a.SandboxID, config, sandbox)
	if err != nil {
		return j.startFailure(a, id, reasonCreate, err)
	}
	j.exec.events.recordContainer(j.pod, c.Name, corev1.EventTypeNormal, "Created", "Container created")
	if err := j.exec.runtime.StartContainer(calls, id); err != nil {
		return j.startFailure(a, id, reasonRun, err)
	}
	j.exec.events.recordContainer(j.pod, c.Name, corev1.EventTypeNormal, "Started", "Container started")
	return j.postStart(ctx, a, c, id)
}

// startFailure returns the reason why a container does not start.
func (j job) startFailure(a plan.Action, id, reason string, err error) plan.Outcome {
	message := replaceID(errorText(err), id, a.Container)
	j.exec.events.recordContainer(j.pod, a.Container, corev1.EventTypeWarning, eventFailed, "Error: "+message)
	return plan.Outcome{ID: id, Reason: reason, Message: message}
}

func (j job) ensureImage(ctx context.Context, c *corev1.Container, sandbox *runtimeapi.PodSandboxConfig) (image.Image, *image.Error) {
	handler, err := j.exec.sandboxes.findHandler(ctx, j.pod)
	if err != nil {
		return image.Image{}, &image.Error{Reason: reasonConfig, Message: err.Error()}
	}
	return j.exec.puller.Ensure(ctx, image.Request{
		Pod: j.pod, Container: c.Name, Image: c.Image, Policy: c.ImagePullPolicy, Sandbox: sandbox, Handler: handler,
	})
}

// containerConfig returns the runtime's configuration of an instance. An error can go into the status of the container.
func (j job) containerConfig(ctx context.Context, a plan.Action, c *corev1.Container, img image.Image) (*runtimeapi.ContainerConfig, error) {
	pod, err := j.exec.volumes.EnvFiles(j.podWithAddresses(), c.Name)
	if err != nil {
		return nil, err
	}
	resolved, err := j.exec.inputs.objects.Container(ctx, pod, c.Name)
	if err != nil {
		return nil, err
	}
	if err := criconfig.VerifyNonRoot(pod, resolved, img.User); err != nil {
		return nil, err
	}
	mounts, err := j.containerMounts(ctx, a, pod, resolved)
	if err != nil {
		return nil, err
	}
	target, err := j.targetOf(c.Name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(j.exec.settings.LogDirectory(pod), c.Name), 0o755); err != nil {
		return nil, fmt.Errorf("create container log directory for container %s failed: %w", c.Name, err)
	}
	return j.exec.settings.Container(criconfig.Instance{
		Pod: pod, Container: resolved, Spec: &c.Resources, Hash: plan.Hash(c), Attempt: a.Attempt, ImageRef: img.Ref, ImageUser: img.User,
		Mounts: mounts, Target: target,
	})
}

// podWithAddresses returns the pod with its current addresses, for its environment.
func (j job) podWithAddresses() *corev1.Pod {
	pod := *j.pod
	hosts := j.exec.hostIPs()
	pod.Status.HostIP, pod.Status.HostIPs, pod.Status.PodIP, pod.Status.PodIPs = "", nil, "", nil
	for _, ip := range hosts {
		pod.Status.HostIPs = append(pod.Status.HostIPs, corev1.HostIP{IP: ip})
	}
	if len(hosts) > 0 {
		pod.Status.HostIP = hosts[0]
	}
	ips := j.podIPs()
	for _, ip := range ips {
		pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: ip})
	}
	if len(ips) > 0 {
		pod.Status.PodIP = ips[0]
	}
	return &pod
}

// podIPs returns the addresses of the sandbox, or of the node for a pod in its network.
func (j job) podIPs() []string {
	if j.pod.Spec.HostNetwork {
		return j.exec.hostIPs()
	}
	if j.sandbox == nil {
		return nil
	}
	return j.sandbox.IPs
}

// containerMounts are the volumes, /etc/hosts and the file for the termination message.
func (j job) containerMounts(ctx context.Context, a plan.Action, pod *corev1.Pod, c *corev1.Container) ([]*runtimeapi.Mount, error) {
	mounts, err := j.exec.volumes.Mounts(ctx, pod, c)
	if err != nil {
		return nil, err
	}
	dir, err := j.exec.volumes.Dir(pod.UID)
	if err != nil {
		return nil, err
	}
	hosts, err := j.exec.sandboxes.files.Mount(dir, pod, c, j.podIPs())
	if err != nil {
		return nil, err
	}
	if hosts != nil {
		mounts = append(mounts, hosts)
	}
	words, err := j.exec.messages.makeMount(pod, c, a.Attempt)
	if err != nil {
		return nil, err
	}
	if words != nil {
		mounts = append(mounts, words)
	}
	return mounts, nil
}

// targetOf returns the ID of the instance whose processes an ephemeral container sees, or "".
func (j job) targetOf(name string) (string, error) {
	for i := range j.pod.Spec.EphemeralContainers {
		e := &j.pod.Spec.EphemeralContainers[i]
		if e.Name != name || e.TargetContainerName == "" {
			continue
		}
		found := ""
		for _, c := range j.others { // the newest instance comes last
			if c.Name == e.TargetContainerName {
				found = c.ID
			}
		}
		if found == "" {
			return "", fmt.Errorf("unable to find target container %s", e.TargetContainerName)
		}
		return found, nil
	}
	return "", nil
}

// postStart runs the hook of a container that has just started.
func (j job) postStart(ctx context.Context, a plan.Action, c *corev1.Container, id string) plan.Outcome {
	if c.Lifecycle == nil || c.Lifecycle.PostStart == nil {
		return plan.Outcome{ID: id}
	}
	target := probe.Target{Pod: j.pod, Container: c, ID: id, PodIPs: j.podIPs(), Running: true}
	if err := j.exec.prober.Hook(ctx, target, c.Lifecycle.PostStart); err != nil {
		// The output of the hook may be secret, so the event does not have it.
		j.exec.events.recordContainer(j.pod, a.Container, corev1.EventTypeWarning, probe.FailedPostStartHook, probe.PostStartHookMessage)
		return plan.Outcome{ID: id, Reason: reasonPostStart, Message: err.Error()}
	}
	return plan.Outcome{ID: id}
}

// imageVolume makes the image of a volume available.
func (e *executor) imageVolume(ctx context.Context, pod *corev1.Pod, volume *corev1.Volume) (*runtimeapi.Mount, error) {
	sandbox, err := e.sandboxes.config(pod, 0)
	if err != nil {
		return nil, err
	}
	img, failed := e.puller.Ensure(ctx, image.Request{Pod: pod, Image: volume.Image.Reference, Policy: volume.Image.PullPolicy, Sandbox: sandbox})
	if failed != nil {
		return nil, failed
	}
	return &runtimeapi.Mount{Image: &runtimeapi.ImageSpec{Image: img.Ref, UserSpecifiedImage: volume.Image.Reference}}, nil
}
