// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"encoding/json"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/criconfig"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

// sandboxOf converts a runtime's sandbox status.
func sandboxOf(s *runtimeapi.PodSandboxStatus) plan.Sandbox {
	out := plan.Sandbox{
		ID: s.GetId(), Attempt: s.GetMetadata().GetAttempt(), Ready: s.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY,
		CreatedAt: timeOfNanos(s.GetCreatedAt()),
	}
	if s.GetNetwork() == nil {
		return out
	}
	if ip := s.Network.Ip; ip != "" {
		out.IPs = append(out.IPs, ip)
	}
	for _, ip := range s.Network.AdditionalIps {
		out.IPs = append(out.IPs, ip.GetIp())
	}
	out.NoAddress = len(out.IPs) == 0
	return out
}

func stateOf(s runtimeapi.ContainerState) plan.State {
	switch s {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		return plan.Created
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		return plan.Running
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		return plan.Exited
	}
	return plan.Unknown
}

// containerOf converts a runtime's container status, without its termination message and its sandbox.
func containerOf(s *runtimeapi.ContainerStatus) plan.Container {
	out := plan.Container{
		ID: s.GetId(), Name: s.GetLabels()[criconfig.LabelContainerName], Attempt: s.GetMetadata().GetAttempt(), State: stateOf(s.GetState()),
		CreatedAt: timeOfNanos(s.GetCreatedAt()), StartedAt: timeOfNanos(s.GetStartedAt()), FinishedAt: timeOfNanos(s.GetFinishedAt()),
		ExitCode: s.GetExitCode(), Reason: s.GetReason(), Message: s.GetMessage(),
		Image: s.GetImage().GetImage(), ImageRef: s.GetImageRef(),
		Hash:      s.GetAnnotations()[criconfig.AnnotationHash],
		Resources: resourcesOf(s.GetResources().GetLinux()),
		User:      userOf(s.GetUser()),
	}
	if out.Name == "" {
		out.Name = s.GetMetadata().GetName()
	}
	if raw := s.GetAnnotations()[criconfig.AnnotationResources]; raw != "" {
		made := &corev1.ResourceRequirements{}
		if json.Unmarshal([]byte(raw), made) == nil {
			out.Created = made
		}
	}
	if s.GetStopSignal() != runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT {
		signal := corev1.Signal(strings.TrimPrefix(s.GetStopSignal().String(), "SIGNAL_"))
		out.StopSignal = &signal
	}
	return out
}

func timeOfNanos(nanoseconds int64) time.Time {
	if nanoseconds <= 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds)
}

func userOf(u *runtimeapi.ContainerUser) *corev1.ContainerUser {
	if u.GetLinux() == nil {
		return nil
	}
	return &corev1.ContainerUser{Linux: &corev1.LinuxContainerUser{
		UID: u.Linux.Uid, GID: u.Linux.Gid, SupplementalGroups: u.Linux.SupplementalGroups,
	}}
}

// resourcesOf converts the limits of a cgroup to limits of a spec.
func resourcesOf(l *runtimeapi.LinuxContainerResources) *corev1.ResourceRequirements {
	if l == nil {
		return nil
	}
	out := &corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	if l.CpuPeriod > 0 && l.CpuQuota > 0 {
		out.Limits[corev1.ResourceCPU] = *resource.NewMilliQuantity(l.CpuQuota*1000/l.CpuPeriod, resource.DecimalSI)
	}
	if l.CpuShares > 0 {
		out.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity((l.CpuShares*1000+1023)/1024, resource.DecimalSI)
	}
	if l.MemoryLimitInBytes > 0 {
		out.Limits[corev1.ResourceMemory] = *resource.NewQuantity(l.MemoryLimitInBytes, resource.BinarySI)
	}
	return out
}
