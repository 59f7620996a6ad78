// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"context"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// containerUse returns the usage of a container.
func (s *Stats) containerUse(c measured, pod statsv1alpha1.PodReference, fs *statsv1alpha1.FsStats) statsv1alpha1.ContainerStats {
	stats := statsv1alpha1.ContainerStats{
		Name: c.container.GetMetadata().GetName(), StartTime: timeOf(c.container.GetCreatedAt()),
		CPU: cpuStats(c.stats.GetCpu()), Memory: memoryStats(c.stats.GetMemory()), Swap: swapStats(c.stats.GetSwap()), IO: ioStats(c.stats.GetIo()),
	}
	s.rates.addRate(c.container.GetId(), stats.CPU)
	if layer := c.stats.GetWritableLayer(); layer != nil {
		stats.Rootfs = s.machine.usedOf(layer)
	}
	if s.config.Logs != nil {
		bytes, inodes := SizeOf(s.config.Logs(pod, stats.Name))
		stats.Logs = partOf(fs, bytes, inodes)
	}
	return stats
}

// partOf returns the share of one user in a shared file system.
func partOf(fs *statsv1alpha1.FsStats, bytes, inodes uint64) *statsv1alpha1.FsStats {
	part := &statsv1alpha1.FsStats{Time: metav1.Now()}
	if fs != nil {
		*part = *fs
	}
	part.UsedBytes, part.InodesUsed = &bytes, &inodes
	return part
}

// SizeOf returns the size of the files in a directory, and their number, including the directory.
func SizeOf(directory string) (bytes, inodes uint64) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return 0, 0
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			bytes += uint64(info.Size())
			inodes++
		}
	}
	return bytes, inodes + 1
}

// addStorage adds the usage of a pod's volumes, and its ephemeral storage: volumes, writable layers of containers, and logs.
func (s *Stats) addStorage(ctx context.Context, pod *statsv1alpha1.PodStats, fs *statsv1alpha1.FsStats) {
	var bytes, inodes uint64
	count := func(part *statsv1alpha1.FsStats) {
		if part != nil && part.UsedBytes != nil {
			bytes += *part.UsedBytes
		}
		if part != nil && part.InodesUsed != nil {
			inodes += *part.InodesUsed
		}
	}
	for i := range pod.Containers {
		count(pod.Containers[i].Rootfs)
		count(pod.Containers[i].Logs)
	}
	if s.config.Volumes != nil {
		volumes, err := s.config.Volumes(ctx, pod.PodRef)
		if err != nil {
			return // without the volumes, the sum would be too small
		}
		for _, v := range volumes {
			stats := statsv1alpha1.VolumeStats{Name: v.Name, FsStats: *partOf(fs, v.Bytes, v.Inodes)}
			if v.Claim != "" {
				stats.PVCRef = &statsv1alpha1.PVCReference{Name: v.Claim, Namespace: pod.PodRef.Namespace}
			}
			pod.VolumeStats = append(pod.VolumeStats, stats)
			if v.Ephemeral {
				count(&stats.FsStats)
			}
		}
	}
	pod.EphemeralStorage = partOf(fs, bytes, inodes)
}
