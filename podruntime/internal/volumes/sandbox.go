// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	corev1 "k8s.io/api/core/v1"
)

// InSandbox returns the directories of volumes in memory that the kernel of a sandbox can provide itself, because only the containers of the pod use
// them, and mount them as a whole.
func (v *Volumes) InSandbox(pod *corev1.Pod) []string {
	if !v.mounts {
		return nil // such a volume has no size
	}
	var dirs []string
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if volume.EmptyDir != nil && onMemory(volume) && isPlainName(volume.Name) && ofContainers(pod, volume.Name) {
			dirs = append(dirs, v.volumeDir(pod.UID, volume.Name, true))
		}
	}
	return dirs
}

// ofContainers reports whether a volume is only used by mounts of the whole volume.
func ofContainers(pod *corev1.Pod, volume string) bool {
	mounted := false
	for c := range allContainers(pod) {
		for i := range c.VolumeMounts {
			if m := &c.VolumeMounts[i]; m.Name == volume {
				mounted = true
				if m.SubPath+m.SubPathExpr != "" {
					return false // the node prepares the directory of a subPath, and it could not be shared with mounts of the whole volume
				}
			}
		}
		for i := range c.Env {
			if from := c.Env[i].ValueFrom; from != nil && from.FileKeyRef != nil && from.FileKeyRef.VolumeName == volume {
				return false // the node reads the file
			}
		}
	}
	return mounted && len(nestedMounts(pod, volume)) == 0 // the node makes directories for nested mounts
}
