// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/criconfig"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/image"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/stats"
)

// usage measures the machine and its pods.
type usage struct {
	stats   *stats.Stats
	meter   *meter
	workers *workers
}

// newUsage returns the usage of a node and its pods.
func newUsage(cfg Config, settings criconfig.Settings, m *meter, w *workers) *usage {
	u := &usage{meter: m, workers: w}
	u.stats = stats.New(stats.Config{
		Runtime: cfg.Runtime, Images: cfg.Images,
		Node: cfg.Node.Name, Labels: map[string]string{criconfig.LabelNode: cfg.Node.Name},
		Root: cfg.Root, Volumes: u.volumeUse,
		Logs: func(pod statsv1alpha1.PodReference, container string) string { return logsOf(settings, pod, container) },
	})
	return u
}

// logsOf returns the directory of the logs of a container.
func logsOf(settings criconfig.Settings, pod statsv1alpha1.PodReference, container string) string {
	meta := metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: types.UID(pod.UID)}
	return filepath.Join(settings.LogDirectory(&corev1.Pod{ObjectMeta: meta}), container)
}

const (
	// usageFresh bounds the age of volume figures, as in a kubelet.
	usageFresh = time.Minute
	// usagePatience bounds a caller's wait for newer figures.
	usagePatience = 100 * time.Millisecond
)

// volumeUse returns the usage of a pod's volumes, or nil if it is unknown.
func (u *usage) volumeUse(ctx context.Context, ref statsv1alpha1.PodReference) ([]stats.Volume, error) {
	_, pod, err := u.workers.shownPod(ref.Namespace, ref.Name)
	if err != nil || string(pod.UID) != ref.UID {
		return nil, nil
	}
	patience, cancel := context.WithTimeout(ctx, usagePatience)
	defer cancel()
	use, err := u.meter.volumeUse(patience, pod, usageFresh)
	if err != nil {
		return nil, err
	}
	var all []stats.Volume
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		used, measured := use[v.Name]
		if !measured {
			continue
		}
		one := stats.Volume{Name: v.Name, Bytes: uint64(max(used.Bytes, 0)), Inodes: uint64(max(used.Inodes, 0))}
		if v.PersistentVolumeClaim != nil {
			one.Claim = v.PersistentVolumeClaim.ClaimName
		}
		one.Ephemeral = one.Claim == "" && !used.Memory
		all = append(all, one)
	}
	return all, nil
}

// imageDisk measures the file system of images.
func (u *usage) imageDisk(ctx context.Context) (image.Disk, error) {
	fs, err := u.stats.ImageFs(ctx)
	if err != nil {
		return image.Disk{}, err
	}
	return image.Disk{Capacity: *fs.CapacityBytes, Available: *fs.AvailableBytes}, nil
}
