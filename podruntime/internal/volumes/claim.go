// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// claim describes a volume on a PersistentVolume. It is resolved once and kept on disk, so containers can restart while the API server is
// unavailable, and the volume never changes.
type claim struct {
	// Name is the name of the PersistentVolume.
	Name string
	// Path is the path of the volume on the machine.
	Path string
	// Local distinguishes the kind local from the kind hostPath.
	Local bool
}

// isClaim reports whether a volume is a PersistentVolume.
func isClaim(source *corev1.VolumeSource) bool {
	return source.PersistentVolumeClaim != nil || source.Ephemeral != nil
}

// readOnly reports whether a pod may only read the PersistentVolume of a volume.
func readOnly(volume *corev1.Volume) bool {
	return volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ReadOnly
}

// dirsOf returns the directories that a PersistentVolume must be in.
func (v *Volumes) dirsOf(c claim) []string {
	if c.Local {
		return slices.Concat(v.cfg.LocalVolumes, v.cfg.HostPaths)
	}
	return v.cfg.HostPaths
}

// setupClaim finds the PersistentVolume of a volume, and checks that its directory exists.
func (v *Volumes) setupClaim(ctx context.Context, pod *corev1.Pod, volume *corev1.Volume) error {
	c, err := v.readClaim(pod.UID, volume.Name)
	if err == nil {
		root, err := v.openClaim(c)
		if err == nil {
			err = root.Close()
		}
		return err
	}
	if v.claims == nil {
		return errors.New("PersistentVolumes: nothing can be read yet")
	}
	found, err := v.claims.PersistentVolume(ctx, pod, volume.Name)
	if err != nil {
		return err
	}
	if c, err = v.onMachine(found); err != nil {
		return err
	}
	root, err := v.openClaim(c)
	if err != nil {
		return err
	}
	defer root.Close()
	if c.Local && !readOnly(volume) {
		if err := v.giveClaim(root, pod); err != nil {
			return err
		}
	}
	return v.keepClaim(pod.UID, volume.Name, c)
}

// onMachine returns the location of a PersistentVolume, and refuses kinds that this node does not support.
func (v *Volumes) onMachine(found *corev1.PersistentVolume) (claim, error) {
	no := func(field, why string) (claim, error) {
		return claim{}, errdefs.InvalidInputf("PersistentVolume %q: spec.%s: %s", found.Name, field, why)
	}
	spec := &found.Spec
	c := claim{Name: found.Name, Local: spec.Local != nil}
	switch {
	case spec.VolumeMode != nil && *spec.VolumeMode != corev1.PersistentVolumeFilesystem:
		return no("volumeMode", "only file systems are supported by this node")
	case len(spec.MountOptions) > 0:
		return no("mountOptions", "this node mounts volumes without further options")
	case spec.Local != nil:
		c.Path = spec.Local.Path
	case spec.HostPath != nil:
		c.Path = spec.HostPath.Path
		if err := checkHostPath(v.cfg.HostPaths, c.Path); err != nil {
			return no("hostPath.path", err.Error())
		}
		return c, v.setupHostPath(spec.HostPath)
	default:
		return no("persistentVolumeSource", "volumes of this kind are not supported by this node")
	}
	if err := checkHostPath(v.dirsOf(c), c.Path); err != nil {
		return no("local.path", err.Error())
	}
	return c, nil
}

// openClaim opens the directory of a PersistentVolume.
func (v *Volumes) openClaim(c claim) (*os.Root, error) {
	root, rel, err := openHostPath(v.dirsOf(c), c.Path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	dir, err := root.OpenRoot(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("MountVolume.NewMounter initialization failed for volume %q : path %q does not exist", c.Name, c.Path)
	case err != nil:
		return nil, fmt.Errorf("volume %q: %s cannot be opened as a directory", c.Name, c.Path)
	}
	return dir, nil
}

// giveClaim changes the group of a local volume to the pod's. With fsGroupChangePolicy OnRootMismatch, it does nothing if the root already matches.
func (v *Volumes) giveClaim(root *os.Root, pod *corev1.Pod) error {
	group := fsGroup(pod)
	if group == nil {
		return nil
	}
	policy := pod.Spec.SecurityContext.FSGroupChangePolicy
	if policy != nil && *policy == corev1.FSGroupChangeOnRootMismatch {
		info, err := root.Stat(".")
		if err != nil {
			return err
		}
		const wanted = fs.ModeSetgid | 0o770
		if gidOf(info) == *group && info.Mode()&wanted == wanted {
			return nil
		}
	}
	return giveTo(root, ".", group, false)
}

// readClaim returns the kept description of a volume. A missing or truncated file is an error.
func (v *Volumes) readClaim(uid types.UID, volume string) (c claim, err error) {
	root, err := os.OpenRoot(filepath.Join(v.pods, string(uid)))
	if err != nil {
		return c, err
	}
	defer root.Close()
	raw, err := root.ReadFile(filepath.Join(claimsDir, volume))
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(raw, &c); err != nil || c.Path == "" {
		return c, errors.Join(fmt.Errorf("volume %q: the record of its PersistentVolume cannot be read", volume), err)
	}
	return c, nil
}

// keepClaim writes the description of a volume atomically.
func (v *Volumes) keepClaim(uid types.UID, volume string, c claim) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(filepath.Join(v.pods, string(uid)))
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(claimsDir, 0o750); err != nil {
		return err
	}
	const next = claimsDir + "/..next" // no volume can have this name
	if err := root.WriteFile(next, raw, 0o600); err != nil {
		return err
	}
	return root.Rename(next, filepath.Join(claimsDir, volume))
}
