// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// A program may build the library with a newer Kubernetes API. These are the fields of the oldest supported version, which same.go compares
// by name; fieldsBeyond finds the others. TestSameNoticesEveryField checks the comparison.
var (
	newStatus = fieldsBeyond[corev1.PodStatus](`ObservedGeneration Phase Reason Message NominatedNodeName QOSClass Resize
		HostIP HostIPs PodIP PodIPs StartTime Conditions InitContainerStatuses ContainerStatuses EphemeralContainerStatuses
		Resources AllocatedResources ResourceClaimStatuses ExtendedResourceClaimStatus`)
	newCondition = fieldsBeyond[corev1.PodCondition](`Type ObservedGeneration Status Reason Message LastProbeTime LastTransitionTime`)
	newContainer = fieldsBeyond[corev1.ContainerStatus](`Name Ready RestartCount Image ImageID ContainerID Started StopSignal
		State LastTerminationState AllocatedResources Resources VolumeMounts User AllocatedResourcesStatus`)
	newState      = fieldsBeyond[corev1.ContainerState](`Waiting Running Terminated`)
	newRunning    = fieldsBeyond[corev1.ContainerStateRunning](`StartedAt`)
	newTerminated = fieldsBeyond[corev1.ContainerStateTerminated](`ExitCode Signal Reason Message ContainerID StartedAt FinishedAt`)
)

// newFields has the indexes of the fields of T that same.go does not compare by name.
type newFields[T any] struct{ at []int }

// fieldsBeyond returns the fields of T that are not among the known names.
func fieldsBeyond[T any](known string) (f newFields[T]) {
	names := strings.Fields(known)
	for i := range reflect.TypeFor[T]().NumField() {
		if !slices.Contains(names, reflect.TypeFor[T]().Field(i).Name) {
			f.at = append(f.at, i)
		}
	}
	return f
}

// same compares the fields as equality.Semantic does. Fields that are empty on both sides are cheap; only other fields need copies on the
// heap.
func (f newFields[T]) same(a, b *T) bool {
	if len(f.at) == 0 || f.none(a) && f.none(b) {
		return true
	}
	x, y := *a, *b
	for _, i := range f.at {
		if !equality.Semantic.DeepEqual(reflect.ValueOf(&x).Elem().Field(i).Interface(), reflect.ValueOf(&y).Elem().Field(i).Interface()) {
			return false
		}
	}
	return true
}

func (f newFields[T]) none(of *T) bool {
	v := reflect.ValueOf(of).Elem()
	for _, i := range f.at {
		if !v.Field(i).IsZero() {
			return false
		}
	}
	return true
}
