// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
)

// maxFiles bounds the growth of files that containers get from the node, such as /etc/hosts: they are on the machine's disk, but not in a volume.
const maxFiles = 10 << 20

// Use is the disk usage of a volume.
type Use struct {
	// Bytes is the allocated size of its files.
	Bytes int64
	// Inodes is the number of files and directories.
	Inodes int64
	// Memory marks a volume in memory.
	Memory bool
	// AtLeast marks an incomplete count: the volume uses at least this space.
	AtLeast bool
}

// Usage returns the use of each volume that is set up for the pod, by the name of the volume. It omits paths of the machine, PersistentVolumes and
// images, which do not belong to the pod. Its duration is proportional to the number of files. When ctx ends, it returns the count so far, without
// the remaining volumes.
func (v *Volumes) Usage(ctx context.Context, pod *corev1.Pod) (map[string]Use, error) {
	all := map[string]Use{}
	names := namedVolumes(pod)
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		memory := onMemory(volume)
		if !names[volume.Name] || !isPlainName(volume.Name) || volume.HostPath != nil || volume.Image != nil || isClaim(&volume.VolumeSource) {
			continue
		}
		if ctx.Err() != nil {
			break
		}
		use, err := measureDir(ctx, v.volumeDir(pod.UID, volume.Name, memory))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil && !use.AtLeast {
			return nil, fmt.Errorf("measure volume %q of pod %s/%s: %w", volume.Name, pod.Namespace, pod.Name, err)
		}
		use.Memory = memory
		all[volume.Name] = use
	}
	return all, nil
}

// Exceeded reports whether a volume of the pod exceeds its sizeLimit by the result of Usage, or whether a file like /etc/hosts exceeds maxFiles. The
// text is the message of an eviction; "" means no.
func (v *Volumes) Exceeded(pod *corev1.Pod, use map[string]Use) (string, error) {
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if volume.EmptyDir == nil || volume.EmptyDir.SizeLimit == nil || volume.EmptyDir.SizeLimit.Sign() <= 0 {
			continue
		}
		if limit := volume.EmptyDir.SizeLimit; use[volume.Name].Bytes > limit.Value() {
			return fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", volume.Name, limit.String()), nil
		}
	}
	entries, err := os.ReadDir(filepath.Join(v.pods, string(pod.UID)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && info.Size() > maxFiles {
			return fmt.Sprintf("File %q of the pod exceeds the limit of %d bytes. ", e.Name(), maxFiles), nil
		}
	}
	return "", nil
}

// inode identifies a file.
type inode struct{ dev, ino uint64 }
