// SPDX-License-Identifier: Apache-2.0

package localpath

import (
	"context"
	"fmt"
	"path"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// isReleased reports whether a volume belongs to this node, no longer has a claim, and must be deleted.
func (c *Controller) isReleased(volume *corev1.PersistentVolume) bool {
	spec := &volume.Spec
	return volume.Labels[NodeLabel] == c.cfg.Node && volume.Annotations[annotationBy] == Driver &&
		volume.Status.Phase == corev1.VolumeReleased && spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
		spec.ClaimRef != nil && volume.Name == nameOf(string(spec.ClaimRef.UID)) &&
		spec.Local != nil && path.Base(spec.Local.Path) == volume.Name
}

// reclaimVolume removes a released volume: first its content, then the object.
func (c *Controller) reclaimVolume(ctx context.Context, name string) error {
	seen, err := c.volumes.Get(name)
	if apierrors.IsNotFound(err) || err == nil && !c.isReleased(seen) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.recordError(seen, eventNotGone, c.remove(ctx, seen))
}

func (c *Controller) remove(ctx context.Context, seen *corev1.PersistentVolume) error {
	volumes := c.cfg.Client.CoreV1().PersistentVolumes()
	// Read the volume again. The watch may lag, an administrator may have decided to keep the volume, and removed content cannot be restored.
	asked, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	now, err := volumes.Get(asked, seen.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read volume %s before it is removed: %w", seen.Name, err)
	case now.UID != seen.UID || !c.isReleased(now):
		return nil // the change queues the volume again
	}
	if err := c.cfg.Remove(ctx, now.Name); err != nil {
		return fmt.Errorf("remove the directory of volume %s: %w", now.Name, err)
	}
	deleted, cancel := context.WithTimeout(ctx, callTimeout) // the removal may have taken some time
	defer cancel()
	err = volumes.Delete(deleted, now.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &now.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete volume %s, whose directory is removed: %w", now.Name, err)
	}
	log.G(ctx).WithField("volume", now.Name).Info("removed a local volume")
	return nil
}
