// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// States of tasks and containers. The other states of a task are PROVISIONING, PENDING, ACTIVATING,
// DEACTIVATING, STOPPING and DEPROVISIONING. In these states, the containers of the task have more information
// than the task.
const (
	stateRunning = "RUNNING"
	statePending = "PENDING"
	stateStopped = "STOPPED"
	stateDeleted = "DELETED"
)

// scheme begins the IDs of containers.
const scheme = "fargate://"

// ended reports whether nothing of a task runs any more.
func ended(t types.Task) bool {
	s := aws.ToString(t.LastStatus)
	return s == stateStopped || s == stateDeleted
}

// observe turns a task of ECS into observations of its pod. The results of this node's probes are not included.
func observe(pod *corev1.Pod, t types.Task) podstatus.Pod {
	out := podstatus.Pod{StartedAt: aws.ToTime(t.CreatedAt), IPs: addresses(t), Ended: ended(t)}
	said := map[string]types.Container{}
	for _, k := range t.Containers {
		said[aws.ToString(k.Name)] = k
	}
	_ = service.Containers(pod, func(c *corev1.Container, init bool, _ *field.Path) error { // the callback returns no error
		if k, ok := said[c.Name]; ok {
			seen := container(c, t, k)
			if init && !podspec.IsSidecar(c) {
				seen.Run.StartedAt, seen.Run.FinishedAt = time.Time{}, time.Time{} // the times of the task are the times of the other containers
			}
			out.Containers = append(out.Containers, seen)
		}
		return nil
	})
	why := aws.ToString(t.StoppedReason)
	if !out.Ended {
		if aws.ToString(t.DesiredStatus) == stateStopped {
			out.Message = why
		}
		if takenAway(pod, t.StopCode) { // an exit code of 0 after the stop signal is no success: the end of the task is the reason
			for i := range out.Containers {
				if c := &out.Containers[i]; c.State == podstatus.Exited {
					c.State, c.Ready, c.Run.ExitCode, c.Run.FinishedAt = podstatus.Running, new(bool), nil, time.Time{}
				}
			}
		}
		return out
	}
	switch t.StopCode {
	case "":
		out.Message = why
	case types.TaskStopCodeEssentialContainerExited: // the states of the containers have the reason
		if always(pod) {
			out.Failed, out.Reason = true, string(t.StopCode)
			out.Message = "a container ended, and ECS did not start it again: " + why
		}
	case types.TaskStopCodeUserInitiated:
		out.Failed = pod.DeletionTimestamp == nil // otherwise the node stopped the task
		out.Reason, out.Message = string(t.StopCode), why
	default: // the task did not start, or was reclaimed; also unknown codes
		out.Failed, out.Reason, out.Message = true, string(t.StopCode), why
	}
	return out
}

// takenAway reports whether a task was stopped by something other than its containers and the node.
func takenAway(pod *corev1.Pod, code types.TaskStopCode) bool {
	switch code {
	case "", types.TaskStopCodeEssentialContainerExited:
		return false
	case types.TaskStopCodeUserInitiated:
		return pod.DeletionTimestamp == nil
	}
	return true
}

// always reports whether a pod should run until it is deleted, and is not deleted. Then its end is no success.
func always(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && (pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || pod.Spec.RestartPolicy == "")
}

// addresses returns the addresses of the network interface, the primary family first.
func addresses(t types.Task) (ips []string) {
	for _, a := range t.Attachments {
		if aws.ToString(a.Type) != "ElasticNetworkInterface" {
			continue
		}
		for _, name := range []string{"privateIPv4Address", "privateIPv6Address"} {
			for _, d := range a.Details {
				if aws.ToString(d.Name) == name && aws.ToString(d.Value) != "" {
					ips = append(ips, *d.Value)
				}
			}
		}
	}
	return ips
}

// container returns the observation of a container. ECS does not report when a single container started, nor how
// often it restarted.
func container(c *corev1.Container, t types.Task, k types.Container) podstatus.Container {
	out := podstatus.Container{Name: c.Name, Image: aws.ToString(k.Image)}
	if k.ImageDigest != nil {
		out.ImageID = out.Image + "@" + *k.ImageDigest
	}
	why := aws.ToString(k.Reason)
	run := podstatus.Run{StartedAt: aws.ToTime(cmp.Or(t.StartedAt, t.PullStoppedAt))} // a task has not started until its last container has, and this container may wait for others
	if k.RuntimeId != nil {
		run.ID = scheme + *k.RuntimeId
	}
	switch state := aws.ToString(k.LastStatus); {
	case state == stateRunning:
		out.State, out.Run = podstatus.Running, run
		if c.ReadinessProbe != nil && !asksNetwork(c.ReadinessProbe) {
			out.Ready = aws.Bool(k.HealthStatus == types.HealthStatusHealthy)
		}
	case state == stateStopped && strings.HasPrefix(why, cannotStart): // the container never ran, for example because its command does not exist
		code := int32(128) // the exit code of a kubelet
		out.State, out.Run = podstatus.Exited, podstatus.Run{ID: run.ID, ExitCode: &code, FinishedAt: finished(t), Reason: "StartError", Message: why}
	case state == stateStopped && (k.ExitCode != nil || k.RuntimeId != nil):
		out.State, out.Run = podstatus.Exited, run
		out.Run.ExitCode, out.Run.FinishedAt, out.Run.Message = k.ExitCode, finished(t), why
		if strings.HasPrefix(why, "OutOfMemoryError") {
			out.Run.Reason, out.Run.Message = "OOMKilled", strings.TrimPrefix(why, "OutOfMemoryError: ")
		}
	case state == stateStopped, state == statePending: // the container did not run
		out.Reason, out.Message = waiting(why), why
	default:
		out.Message = strings.TrimSpace(fmt.Sprintf("ECS says that it is %s %s", state, why))
	}
	return out
}

// finished returns when the containers of a task ended, as far as ECS reports it.
func finished(t types.Task) time.Time {
	if t.ExecutionStoppedAt != nil {
		return *t.ExecutionStoppedAt
	}
	return aws.ToTime(t.StoppedAt)
}

// cannotStart is the prefix of the reason of a container that was made and could not be started.
const cannotStart = "CannotStartContainerError"

// waiting returns why a container did not start, as a waiting reason of the kubelet.
func waiting(why string) string {
	for _, w := range []struct{ begin, reason string }{
		{"CannotPull", "ErrImagePull"}, {"ResourceInitializationError", "CreateContainerConfigError"},
		{"CannotCreate", "CreateContainerError"}, {"CannotStart", "RunContainerError"},
	} {
		if strings.HasPrefix(why, w.begin) {
			return w.reason
		}
	}
	return ""
}

// asksNetwork reports whether a probe connects to a port of its pod.
func asksNetwork(probe *corev1.Probe) bool {
	return probe != nil && (probe.HTTPGet != nil || probe.TCPSocket != nil || probe.GRPC != nil)
}
