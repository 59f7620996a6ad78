// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// refreshEvery is the interval at which volumes are compared with the API. The comparison is cheap, because it only reads memory. A kubelet needs up
// to a minute.
const refreshEvery = 15 * time.Second

// Check refuses pods with volumes that this node can never provide. The error is of the kind invalid-input, and
// names the volume and the field.
func (v *Volumes) Check(pod *corev1.Pod) error { return v.cfg.Check(pod) }

// Check is Volumes.Check for a complete configuration.
func (c Config) Check(pod *corev1.Pod) error {
	names := namedVolumes(pod)
	for i := range pod.Spec.Volumes {
		if names[pod.Spec.Volumes[i].Name] {
			if err := c.refuseVolume(&pod.Spec.Volumes[i], i); err != nil {
				return err
			}
		}
	}
	return nil
}

// Setup makes the volumes that containers of the pod mount. It may be called again at any time, and then completes missing volumes. It returns the
// time until Refresh. An error about volumes is an *Error.
func (v *Volumes) Setup(ctx context.Context, pod *corev1.Pod) (again time.Duration, err error) {
	defer v.locks.lock(pod.UID)()
	return v.eachVolume(ctx, pod, v.setupVolume)
}

// Refresh updates the volumes that are written from the API, and returns the time until the next call. Call it earlier when labels or annotations of
// the pod change. An error about volumes is an *Error; a volume in it keeps its files. After Remove, a late Refresh does nothing.
func (v *Volumes) Refresh(ctx context.Context, pod *corev1.Pod) (again time.Duration, err error) {
	defer v.locks.lock(pod.UID)()
	if _, err := os.Lstat(filepath.Join(v.pods, string(pod.UID))); errors.Is(err, fs.ErrNotExist) {
		return refreshEvery, nil
	}
	return v.eachVolume(ctx, pod, func(ctx context.Context, pod *corev1.Pod, i int) (time.Time, error) {
		if !podspec.Written(&pod.Spec.Volumes[i]) {
			return time.Time{}, nil
		}
		return v.setupVolume(ctx, pod, i)
	})
}

// eachVolume calls do for each volume that a container mounts, even after errors, and returns the time until the next call. The caller holds the lock
// of the pod.
func (v *Volumes) eachVolume(ctx context.Context, pod *corev1.Pod, do func(context.Context, *corev1.Pod, int) (time.Time, error)) (time.Duration, error) {
	var failed Error
	if _, err := v.Dir(pod.UID); err != nil {
		return refreshEvery, err
	}
	again := refreshEvery
	names := namedVolumes(pod)
	for i := range pod.Spec.Volumes {
		name := pod.Spec.Volumes[i].Name
		if !names[name] {
			continue
		}
		at, err := do(ctx, pod, i)
		if !at.IsZero() {
			again = min(again, max(time.Second, time.Until(at)))
		}
		failed.add(name, err)
	}
	return again, failed.orNil()
}

// setupVolume makes one volume. The returned time is the time of the next check, if known.
func (v *Volumes) setupVolume(ctx context.Context, pod *corev1.Pod, i int) (time.Time, error) {
	volume := &pod.Spec.Volumes[i]
	if err := v.cfg.refuseVolume(volume, i); err != nil {
		return time.Time{}, err
	}
	switch {
	case podspec.Written(volume):
		return v.writeVolume(ctx, pod, i)
	case volume.HostPath != nil:
		return time.Time{}, v.setupHostPath(volume.HostPath)
	case isClaim(&volume.VolumeSource):
		return time.Time{}, v.setupClaim(ctx, pod, volume)
	case volume.Image != nil:
		return time.Time{}, nil // the image is mounted when a container is made
	default:
		return time.Time{}, v.setupEmptyDir(pod, volume)
	}
}

// onMemory reports whether a volume is in memory, like every volume that may contain secrets.
func onMemory(volume *corev1.Volume) bool {
	return volume.Secret != nil || volume.Projected != nil || volume.DownwardAPI != nil ||
		volume.EmptyDir != nil && volume.EmptyDir.Medium == corev1.StorageMediumMemory
}
