// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	cri "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/criconfig"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/stats"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/volumes"
)

// storageLimited reports whether a pod has a limit on disk usage.
func storageLimited(pod *corev1.Pod) bool {
	_, limited := storageLimit(pod)
	return limited || slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil })
}

// storageLimit returns the limit of the ephemeral storage of a pod's containers together, if any of them has a
// limit.
func storageLimit(pod *corev1.Pod) (limit resource.Quantity, limited bool) {
	var beside resource.Quantity // of the sidecars that are already running
	var most resource.Quantity   // while the init containers run
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		own, has := c.Resources.Limits[corev1.ResourceEphemeralStorage]
		limited = limited || has
		if plan.Sidecar(c) {
			beside.Add(own)
			continue
		}
		own = own.DeepCopy()
		if own.Add(beside); own.Cmp(most) > 0 {
			most = own
		}
	}
	limit = beside
	for i := range pod.Spec.Containers {
		own, has := pod.Spec.Containers[i].Resources.Limits[corev1.ResourceEphemeralStorage]
		limited = limited || has
		limit.Add(own)
	}
	if most.Cmp(limit) > 0 {
		limit = most
	}
	return limit, limited
}

// exceededStorage returns the limit of ephemeral storage that a pod exceeds, given the bytes that each container has written to its layer and log,
// and the usage of each volume. The text is the message of an eviction; "" means none.
func exceededStorage(pod *corev1.Pod, written map[string]int64, use map[string]volumes.Use) string {
	if limit, limited := storageLimit(pod); limited {
		var total int64
		for _, bytes := range written {
			total += bytes
		}
		for i := range pod.Spec.Volumes {
			if v := &pod.Spec.Volumes[i]; v.PersistentVolumeClaim == nil && !use[v.Name].Memory {
				total += use[v.Name].Bytes
			}
		}
		if total > limit.Value() {
			return fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", limit.String())
		}
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if limit := c.Resources.Limits.StorageEphemeral(); !limit.IsZero() && written[c.Name] > limit.Value() {
			return fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", c.Name, limit.String())
		}
	}
	return ""
}

// diskLimits compares the disk usage of pods with their limits.
type diskLimits struct {
	runtime  cri.RuntimeService
	settings criconfig.Settings
	meter    *meter
	volumes  *volumes.Volumes
}

// layerUse returns the bytes in the layers and logs of a sandbox's running containers.
func (d *diskLimits) layerUse(ctx context.Context, pod *corev1.Pod, sandbox string) (map[string]int64, error) {
	if sandbox == "" {
		return nil, nil // no container runs
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	list, err := d.runtime.ListContainerStats(ctx, &runtimeapi.ContainerStatsFilter{PodSandboxId: sandbox})
	if err != nil {
		return nil, fmt.Errorf("read the disk use of containers from the container runtime: %w", err)
	}
	ref := statsv1alpha1.PodReference{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}
	all := map[string]int64{}
	for _, one := range list {
		name := one.GetAttributes().GetMetadata().GetName()
		logs, _ := stats.SizeOf(logsOf(d.settings, ref, name))
		all[name] = int64(one.GetWritableLayer().GetUsedBytes().GetValue()) + int64(logs) //nolint:gosec // sizes of files fit
	}
	return all, nil
}

// exceededLimit returns the exceeded disk or volume limit of a pod; "" means none.
func (d *diskLimits) exceededLimit(ctx context.Context, pod *corev1.Pod, sandbox string) (string, error) {
	use, err := d.meter.volumeUse(ctx, pod, measureEvery)
	if errors.Is(err, errNotMeasured) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if message, err := d.volumes.Exceeded(pod, use); message != "" || err != nil {
		return message, err
	}
	if _, limited := storageLimit(pod); !limited {
		return "", nil
	}
	written, err := d.layerUse(ctx, pod, sandbox)
	if err != nil {
		return "", err
	}
	return exceededStorage(pod, written, use), nil
}
