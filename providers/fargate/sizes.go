// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/sizing"
)

// sizes are the sizes of tasks on Linux, platform 1.4.0 and later:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-cpu-memory-error.html, read on 2026-11-24.
var sizes = []sizing.Row{
	sizing.At(250, sizing.One(512*sizing.Mi), sizing.One(1*sizing.Gi), sizing.One(2*sizing.Gi)),
	sizing.At(500, sizing.Range(1*sizing.Gi, 4*sizing.Gi, sizing.Gi)),
	sizing.At(1000, sizing.Range(2*sizing.Gi, 8*sizing.Gi, sizing.Gi)),
	sizing.At(2000, sizing.Range(4*sizing.Gi, 16*sizing.Gi, sizing.Gi)),
	sizing.At(4000, sizing.Range(8*sizing.Gi, 30*sizing.Gi, sizing.Gi)),
	sizing.At(8000, sizing.Range(16*sizing.Gi, 60*sizing.Gi, 4*sizing.Gi)),
	sizing.At(16000, sizing.Range(32*sizing.Gi, 120*sizing.Gi, 8*sizing.Gi)),
}

// Storage of a task, in GiB: the default and the maximum.
const (
	storageGiven = 20
	storageMost  = 200
)

// minMemory is the minimum memory of a container in ECS, in bytes.
const minMemory = 6 * sizing.Mi

// ask returns the resources of a container: its requests, or its limits where it has no request.
func ask(c *corev1.Container) corev1.ResourceList {
	all := c.Resources.Limits.DeepCopy()
	if all == nil {
		all = corev1.ResourceList{}
	}
	for name, q := range c.Resources.Requests {
		all[name] = q
	}
	return all
}

// buy returns the smallest size with room for a pod: for all containers that run together, and for each init
// container with the sidecars that start before it. A memory limit counts as a request, because ECS accepts no
// limit above the size of the task.
func buy(pod *corev1.Pod) (size sizing.Size, storage int32, err error) {
	if err := checkResources(pod); err != nil {
		return sizing.Size{}, 0, err
	}
	asked := sizing.OfPod(pod, room)
	size, ok := sizing.Fit(sizes, asked)
	if !ok {
		return sizing.Size{}, 0, errdefs.InvalidInputf("spec.containers: the pod needs %s: Fargate has no task so large, or none of such proportions", asked)
	}
	gib := (sizing.Together(pod, diskOf) + sizing.Gi - 1) / sizing.Gi
	if gib > storageMost {
		return sizing.Size{}, 0, errdefs.InvalidInputf("spec.containers: the pod needs %d GiB of ephemeral storage: Fargate has %d", gib, storageMost)
	}
	if gib > storageGiven {
		storage = int32(gib)
	}
	return size, storage, nil
}

// room returns the room that a container needs.
func room(c *corev1.Container) sizing.Size {
	return sizing.Of(ask(c)).Most(sizing.Size{Memory: sizing.Of(c.Resources.Limits).Memory})
}

func diskOf(c *corev1.Container) int64 {
	q := ask(c)[corev1.ResourceEphemeralStorage]
	return q.Value()
}

// checkResources refuses unsupported resources.
func checkResources(pod *corev1.Pod) error {
	return service.Containers(pod, func(c *corev1.Container, _ bool, at *field.Path) error {
		return podspec.CheckResources(c, at, "tasks on Fargate have cpu, memory and ephemeral-storage",
			corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage)
	})
}
