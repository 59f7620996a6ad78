// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Every write and every resync compares these values, so they are compared field by field without reflection, with the same result as
// equality.Semantic. Rare fields, and fields of a newer API (newfields.go), are compared with equality.Semantic.

func sameStatus(a, b *corev1.PodStatus) bool {
	return all(
		a.ObservedGeneration == b.ObservedGeneration, a.Phase == b.Phase, a.Reason == b.Reason, a.Message == b.Message,
		a.NominatedNodeName == b.NominatedNodeName, a.QOSClass == b.QOSClass, a.Resize == b.Resize,
		a.HostIP == b.HostIP, slices.Equal(a.HostIPs, b.HostIPs), a.PodIP == b.PodIP, slices.Equal(a.PodIPs, b.PodIPs),
		a.StartTime.Equal(b.StartTime),
	) && slices.EqualFunc(a.Conditions, b.Conditions, sameConditionValue) && all(
		sameContainers(a.InitContainerStatuses, b.InitContainerStatuses),
		sameContainers(a.ContainerStatuses, b.ContainerStatuses),
		sameContainers(a.EphemeralContainerStatuses, b.EphemeralContainerStatuses),
		samePointer(a.Resources, b.Resources), sameMap(a.AllocatedResources, b.AllocatedResources),
		sameList(a.ResourceClaimStatuses, b.ResourceClaimStatuses),
		samePointer(a.ExtendedResourceClaimStatus, b.ExtendedResourceClaimStatus),
		newStatus.same(a, b),
	)
}

func sameConditionValue(a, b corev1.PodCondition) bool { return sameCondition(&a, &b) }

func sameCondition(a, b *corev1.PodCondition) bool {
	return all(
		a.Type == b.Type, a.ObservedGeneration == b.ObservedGeneration, a.Status == b.Status,
		a.Reason == b.Reason, a.Message == b.Message,
		a.LastProbeTime.Equal(&b.LastProbeTime), a.LastTransitionTime.Equal(&b.LastTransitionTime),
		newCondition.same(a, b),
	)
}

func sameContainers(a, b []corev1.ContainerStatus) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !sameContainer(&a[i], &b[i]) {
			return false
		}
	}
	return true
}

func sameContainer(a, b *corev1.ContainerStatus) bool {
	return all(
		a.Name == b.Name, a.Ready == b.Ready, a.RestartCount == b.RestartCount,
		a.Image == b.Image, a.ImageID == b.ImageID, a.ContainerID == b.ContainerID,
		sameValue(a.Started, b.Started), sameValue(a.StopSignal, b.StopSignal),
		sameState(&a.State, &b.State), sameState(&a.LastTerminationState, &b.LastTerminationState),
		sameMap(a.AllocatedResources, b.AllocatedResources), samePointer(a.Resources, b.Resources),
		sameList(a.VolumeMounts, b.VolumeMounts), samePointer(a.User, b.User),
		sameList(a.AllocatedResourcesStatus, b.AllocatedResourcesStatus), newContainer.same(a, b),
	)
}

func sameState(a, b *corev1.ContainerState) bool {
	return all(
		sameValue(a.Waiting, b.Waiting), sameRunning(a.Running, b.Running), sameTerminated(a.Terminated, b.Terminated),
		newState.same(a, b),
	)
}

func sameRunning(a, b *corev1.ContainerStateRunning) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.StartedAt.Equal(&b.StartedAt) && newRunning.same(a, b)
}

func sameTerminated(a, b *corev1.ContainerStateTerminated) bool {
	if a == nil || b == nil {
		return a == b
	}
	return all(
		a.ExitCode == b.ExitCode, a.Signal == b.Signal, a.Reason == b.Reason, a.Message == b.Message, a.ContainerID == b.ContainerID,
		a.StartedAt.Equal(&b.StartedAt), a.FinishedAt.Equal(&b.FinishedAt), newTerminated.same(a, b),
	)
}

// all reports whether all comparisons are true.
func all(same ...bool) bool { return !slices.Contains(same, false) }

// sameValue compares pointers to comparable values.
func sameValue[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// samePointer, sameList and sameMap compare values that are usually nil or empty.
func samePointer[T any](a, b *T) bool { return a == b || equality.Semantic.DeepEqual(a, b) }

func sameList[T any](a, b []T) bool {
	return len(a) == 0 && len(b) == 0 || equality.Semantic.DeepEqual(a, b)
}

func sameMap[K comparable, V any](a, b map[K]V) bool {
	return len(a) == 0 && len(b) == 0 || equality.Semantic.DeepEqual(a, b)
}
