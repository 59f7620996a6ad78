// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/podenv"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// Mounts returns the mounts of a container, in the order of its volumeMounts. The environment of the container is resolved, because subPathExpr uses
// it. The text of an error can be the message of CreateContainerConfigError.
func (v *Volumes) Mounts(ctx context.Context, pod *corev1.Pod, container *corev1.Container) ([]*runtimeapi.Mount, error) {
	defer v.locks.lock(pod.UID)()
	mounts := make([]*runtimeapi.Mount, 0, len(container.VolumeMounts))
	for i := range container.VolumeMounts {
		mount, err := v.mountVolume(ctx, pod, container, i)
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, mount)
	}
	return mounts, nil
}

func (v *Volumes) mountVolume(ctx context.Context, pod *corev1.Pod, container *corev1.Container, index int) (*runtimeapi.Mount, error) {
	wish := &container.VolumeMounts[index]
	i := slices.IndexFunc(pod.Spec.Volumes, func(o corev1.Volume) bool { return o.Name == wish.Name })
	if i < 0 {
		return nil, fmt.Errorf("cannot find volume %q to mount into container %q", wish.Name, container.Name)
	}
	volume := &pod.Spec.Volumes[i]
	if err := v.cfg.refuseVolume(volume, i); err != nil {
		return nil, err
	}
	sub, err := subPath(wish, container.Env)
	if err != nil {
		return nil, err
	}
	mount, err := v.mountOptions(pod, volume, wish)
	if err != nil {
		return nil, err
	}
	p := pin{v: v, uid: pod.UID, volume: volume.Name, container: container.Name, index: index, sub: sub, mount: mount, keep: podspec.Written(volume) || volume.Image != nil}
	switch {
	case volume.Image != nil:
		image, err := v.cfg.Image(ctx, pod, volume)
		if err != nil {
			return nil, err
		}
		if image.Image != nil {
			mount.Image, mount.ImageSubPath = image.Image, sub
			return mount, nil
		}
		return mount, p.pinVolume(image.HostPath)
	case volume.HostPath != nil:
		return mount, p.onHost(v.cfg.HostPaths, volume.HostPath.Path)
	case isClaim(&volume.VolumeSource):
		c, err := v.readClaim(pod.UID, volume.Name)
		if err != nil {
			return nil, fmt.Errorf("cannot find volume %q to mount into container %q", wish.Name, container.Name)
		}
		mount.Readonly = mount.Readonly || readOnly(volume)
		mount.SelinuxRelabel = c.Local
		return mount, p.onHost(v.dirsOf(c), c.Path)
	}
	dir := v.volumeDir(pod.UID, volume.Name, onMemory(volume))
	if !v.isStanding(dir, onMemory(volume)) {
		return nil, fmt.Errorf("cannot find volume %q to mount into container %q", wish.Name, container.Name)
	}
	mount.SelinuxRelabel = true
	return mount, p.pinVolume(dir)
}

// mountOptions sets the options of a volume's mount.
func (v *Volumes) mountOptions(pod *corev1.Pod, volume *corev1.Volume, wish *corev1.VolumeMount) (*runtimeapi.Mount, error) {
	path := wish.MountPath
	if !strings.HasPrefix(path, "/") && !filepath.IsAbs(path) {
		path = "/" + path
	}
	mount := &runtimeapi.Mount{
		ContainerPath: path,
		Readonly:      wish.ReadOnly || podspec.Written(volume) || volume.Image != nil,
		MountOptions:  wish.BindMountOptions,
	}
	mode := corev1.MountPropagationNone
	if wish.MountPropagation != nil {
		mode = *wish.MountPropagation
	}
	switch mode {
	case corev1.MountPropagationNone:
	case corev1.MountPropagationHostToContainer:
		mount.Propagation = runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
	case corev1.MountPropagationBidirectional:
		mount.Propagation = runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL
	default:
		return nil, fmt.Errorf("invalid MountPropagation mode: %q", mode)
	}
	var err error
	if mount.RecursiveReadOnly, err = v.isRecursiveReadOnly(pod, wish, mode); err != nil {
		return nil, fmt.Errorf("failed to resolve recursive read-only mode: %w", err)
	}
	return mount, nil
}

// isRecursiveReadOnly reports whether a mount is read-only including all mounts below it.
func (v *Volumes) isRecursiveReadOnly(pod *corev1.Pod, wish *corev1.VolumeMount, propagation corev1.MountPropagationMode) (bool, error) {
	if wish.RecursiveReadOnly == nil || *wish.RecursiveReadOnly == corev1.RecursiveReadOnlyDisabled {
		return false, nil
	}
	can := v.cfg.RecursiveReadOnly != nil && v.cfg.RecursiveReadOnly(pod)
	switch mode := *wish.RecursiveReadOnly; {
	case !wish.ReadOnly:
		return false, fmt.Errorf("volume %q requested recursive read-only mode, but it is not read-only", wish.Name)
	case propagation != corev1.MountPropagationNone:
		return false, fmt.Errorf("volume %q requested recursive read-only mode, but it is not compatible with propagation %q", wish.Name, propagation)
	case mode == corev1.RecursiveReadOnlyIfPossible:
		return can, nil
	case mode != corev1.RecursiveReadOnlyEnabled:
		return false, fmt.Errorf("unknown recursive read-only mode %q", mode)
	case !can:
		return false, fmt.Errorf("volume %q requested recursive read-only mode, but it is not supported by the runtime", wish.Name)
	}
	return true, nil
}

// subPath returns the path in the volume for a mount, or "" for the whole volume.
func subPath(wish *corev1.VolumeMount, env []corev1.EnvVar) (string, error) {
	sub := wish.SubPath
	if wish.SubPathExpr != "" {
		missing := map[string]bool{}
		sub = podenv.Expand(wish.SubPathExpr, func(name string) (string, bool) {
			for i := range slices.Backward(env) {
				if env[i].Name == name && env[i].ValueFrom == nil && env[i].Value != "" {
					return env[i].Value, true
				}
			}
			missing[name] = true
			return "", false
		})
		if len(missing) > 0 {
			return "", fmt.Errorf("missing value for %s", strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
		}
	}
	if filepath.IsAbs(sub) || strings.HasPrefix(sub, "/") {
		return "", fmt.Errorf("error SubPath `%s` must not be an absolute path", sub)
	}
	if slices.Contains(strings.Split(filepath.ToSlash(sub), "/"), "..") {
		return "", fmt.Errorf("unable to provision SubPath `%s`: must not contain '..'", sub)
	}
	return sub, nil
}
