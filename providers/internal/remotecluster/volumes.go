// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"errors"
	"fmt"
	"path"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// A claim of a home pod becomes a remote claim with the mapped storage class. The node creates the home
// PersistentVolume, which has no data: it stands for the remote claim, and is deleted with the home claim.

// standIns is the parent path in home PersistentVolumes; their name follows. There is no such directory.
const standIns = "/remote-cluster"

// WithVolumes adds the features of pods with mapped storage classes to d.
func WithVolumes(d capability.Declaration) capability.Declaration {
	return d.Note("of the StorageClasses that are mapped: claims of the remote cluster", capability.PersistentVolume)
}

// UsePodClaims sets the reader of home PersistentVolumes.
func (c *Cluster) UsePodClaims(claims node.PodClaims) { c.volumes = claims }

// ProvisionsVolumes reports whether storage classes are mapped.
func (c *Cluster) ProvisionsVolumes() bool { return len(c.config.StorageClasses) > 0 }

// MakeVolume returns the path of a home PersistentVolume. The remote claim is created with the first pod that
// needs it.
func (*Cluster) MakeVolume(_ context.Context, name string) (string, error) {
	return path.Join(standIns, name), nil
}

// RemoveVolume deletes the remote claim of a home PersistentVolume.
func (c *Cluster) RemoveVolume(ctx context.Context, name string) error {
	if err := c.awaitReady(ctx); err != nil {
		return err
	}
	all := c.client.CoreV1().PersistentVolumeClaims(c.config.Namespace)
	list, err := all.List(ctx, metav1.ListOptions{LabelSelector: labels.Set(c.homeLabels(map[string]string{labelVolume: labelValue(name)})).String()})
	if err != nil {
		return fmt.Errorf("look in the remote cluster for the claim of volume %s: %w", name, classifyError(err))
	}
	for i := range list.Items {
		claim := &list.Items[i]
		err := c.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Delete(ctx, claim.Name, deleteByUID(claim.UID))
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // a conflict means another UID: this claim is gone
			return fmt.Errorf("delete claim %s/%s in the remote cluster: %w", claim.Namespace, claim.Name, classifyError(err))
		}
	}
	return nil
}

// remoteClaims returns the remote claims of a pod, by volume. The home claims must be bound.
func (c *Cluster) remoteClaims(ctx context.Context, home *corev1.Pod, namespace string) (map[string]*corev1.PersistentVolumeClaim, error) {
	out := map[string]*corev1.PersistentVolumeClaim{}
	for i := range home.Spec.Volumes {
		v := &home.Spec.Volumes[i]
		if v.PersistentVolumeClaim == nil && v.Ephemeral == nil || !c.ProvisionsVolumes() {
			continue
		}
		if c.volumes == nil {
			return nil, errors.New("this node finds no PersistentVolumes of pods")
		}
		volume, err := c.volumes.PersistentVolume(ctx, home, v.Name)
		if err != nil {
			return nil, fmt.Errorf("volume %q: %w", v.Name, err)
		}
		claim, err := c.claimFor(volume, namespace)
		if err != nil {
			return nil, errdefs.AsInvalidInput(fmt.Errorf("volume %q: %w", v.Name, err))
		}
		out[v.Name] = claim
	}
	return out, nil
}

// claimFor returns the remote claim of a home PersistentVolume.
func (c *Cluster) claimFor(volume *corev1.PersistentVolume, namespace string) (*corev1.PersistentVolumeClaim, error) {
	class, mapped := c.config.StorageClasses[volume.Spec.StorageClassName]
	switch {
	case !mapped:
		return nil, fmt.Errorf("storageClassName %q has no storage class in the remote cluster: name one in storageClasses of the provider", volume.Spec.StorageClassName)
	case volume.Spec.Local == nil || volume.Spec.Local.Path != path.Join(standIns, volume.Name):
		return nil, fmt.Errorf("what PersistentVolume %s has stays in this cluster: use a claim whose StorageClass has the provisioner virtual-kubelet.io/local-path", volume.Name)
	}
	from := volume.Spec.ClaimRef
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: shortenName(from.Name, 200) + "-" + shortHash(c.config.Home.Cluster, c.config.Home.Node, kindClaim, from.Namespace, from.Name, string(from.UID)),
			Labels:      c.homeLabels(map[string]string{LabelUID: string(from.UID), labelVolume: labelValue(volume.Name)}),
			Annotations: map[string]string{AnnotationNamespace: from.Namespace, AnnotationName: from.Name},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: volume.Spec.AccessModes, VolumeMode: volume.Spec.VolumeMode, StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: volume.Spec.Capacity[corev1.ResourceStorage]}},
		},
	}, nil
}

// putClaims creates the remote claims that do not exist. An existing claim is the right one, because its name
// contains a hash of the home claim's UID.
func (c *Cluster) putClaims(ctx context.Context, claims map[string]*corev1.PersistentVolumeClaim) error {
	for volume, claim := range claims {
		_, err := c.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Create(ctx, claim, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("volume %q: make claim %s/%s in the remote cluster: %w", volume, claim.Namespace, claim.Name, err)
		}
	}
	return nil
}

// namesOf returns the names of claims, by volume.
func namesOf(claims map[string]*corev1.PersistentVolumeClaim) map[string]string {
	out := map[string]string{}
	for volume, claim := range claims {
		out[volume] = claim.Name
	}
	return out
}

// claimsIn returns the names of the claims of a remote pod, by volume.
func claimsIn(remote *corev1.Pod) map[string]string {
	out := map[string]string{}
	for _, v := range remote.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			out[v.Name] = v.PersistentVolumeClaim.ClaimName
		}
	}
	return out
}
