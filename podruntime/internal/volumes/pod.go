// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"
	"iter"
	"path"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// allContainers iterates over the containers of a pod of all kinds.
func allContainers(pod *corev1.Pod) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for i := range pod.Spec.InitContainers {
			if !yield(&pod.Spec.InitContainers[i]) {
				return
			}
		}
		for i := range pod.Spec.Containers {
			if !yield(&pod.Spec.Containers[i]) {
				return
			}
		}
		for i := range pod.Spec.EphemeralContainers {
			if !yield((*corev1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)) {
				return
			}
		}
	}
}

// namedVolumes returns the volumes that containers mount. As in a kubelet, other volumes are not set up.
func namedVolumes(pod *corev1.Pod) map[string]bool {
	names := map[string]bool{}
	for c := range allContainers(pod) {
		for i := range c.VolumeMounts {
			names[c.VolumeMounts[i].Name] = true
		}
		for i := range c.VolumeDevices {
			names[c.VolumeDevices[i].Name] = true
		}
		for i := range c.Env {
			if from := c.Env[i].ValueFrom; from != nil && from.FileKeyRef != nil {
				names[from.FileKeyRef.VolumeName] = true
			}
		}
	}
	return names
}

// refuseVolume returns the reason why a volume can never be set up, or nil.
func (c Config) refuseVolume(volume *corev1.Volume, i int) error {
	at := field.NewPath("spec", "volumes").Index(i)
	no := func(path *field.Path, why string) error {
		return errdefs.InvalidInputf("%s: volume %q: %s", path, volume.Name, why)
	}
	if !isPlainName(volume.Name) {
		return no(at.Child("name"), "this cannot be a name")
	}
	switch source := &volume.VolumeSource; {
	case source.EmptyDir != nil:
		if m := source.EmptyDir.Medium; m != "" && m != corev1.StorageMediumMemory {
			return no(at.Child("emptyDir", "medium"), fmt.Sprintf("medium %q is not supported by this node", m))
		}
	case source.HostPath != nil:
		if err := checkHostPath(c.HostPaths, source.HostPath.Path); err != nil {
			return no(at.Child("hostPath", "path"), err.Error())
		}
	case source.Image != nil:
		if c.Image == nil {
			return no(at.Child("image"), "images as volumes are not supported by this node")
		}
	case isClaim(source):
		if len(c.HostPaths)+len(c.LocalVolumes) == 0 {
			return no(at.Child(kindOf(source)), "no directory of the machine is open to PersistentVolumes; see localVolumes in the provider's configuration")
		}
	case source.ConfigMap != nil, source.Secret != nil, source.DownwardAPI != nil, source.Projected != nil:
	default:
		if kind := kindOf(source); kind != "" {
			return no(at.Child(kind), "volumes of this kind are not supported by this node")
		}
	}
	return nil
}

// kindOf returns the name of the field that is set in the source, or "" for an emptyDir.
func kindOf(source *corev1.VolumeSource) string {
	value := reflect.ValueOf(*source)
	for i := range value.NumField() {
		if !value.Field(i).IsNil() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return ""
}

// nestedMounts returns the directories in a volume on which other volumes of a container are mounted. The runtime could not make them, because the
// volume is read-only.
func nestedMounts(pod *corev1.Pod, volume string) []string {
	var dirs []string
	for c := range allContainers(pod) {
		var all []string
		for i := range c.VolumeMounts {
			all = append(all, path.Clean("/"+c.VolumeMounts[i].MountPath))
		}
		for i := range c.VolumeMounts {
			if c.VolumeMounts[i].Name != volume || c.VolumeMounts[i].SubPath+c.VolumeMounts[i].SubPathExpr != "" {
				continue
			}
			below := strings.TrimSuffix(all[i], "/") + "/"
			for _, other := range all {
				// A directory below another mount is made in that mount.
				between := func(m string) bool { return strings.HasPrefix(m, below) && strings.HasPrefix(other, m+"/") }
				if rest, ok := strings.CutPrefix(other, below); ok && !slices.ContainsFunc(all, between) {
					dirs = append(dirs, rest)
				}
			}
		}
	}
	return dirs
}

// fsGroup returns the group of the pod's volumes.
func fsGroup(pod *corev1.Pod) *int64 {
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	return pod.Spec.SecurityContext.FSGroup
}

// memoryLimit returns the memory limit of the pod; 0 means unknown.
func memoryLimit(pod *corev1.Pod) int64 {
	if r := pod.Spec.Resources; r != nil && !r.Limits.Memory().IsZero() {
		return r.Limits.Memory().Value()
	}
	var together, start, sidecars int64
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		limit := c.Resources.Limits.Memory().Value()
		if limit == 0 {
			return 0
		}
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars += limit
			limit = 0
		}
		start = max(start, sidecars+limit)
	}
	for i := range pod.Spec.Containers {
		limit := pod.Spec.Containers[i].Resources.Limits.Memory().Value()
		if limit == 0 {
			return 0
		}
		together += limit
	}
	return max(start, together+sidecars) + pod.Spec.Overhead.Memory().Value()
}
