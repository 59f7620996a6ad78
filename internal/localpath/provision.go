// SPDX-License-Identifier: Apache-2.0

package localpath

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// Annotations of claims and volumes that Kubernetes controllers and provisioners share.
const (
	annotationDriver    = "volume.kubernetes.io/storage-provisioner"
	annotationDriverOld = "volume.beta.kubernetes.io/storage-provisioner"
	annotationNode      = "volume.kubernetes.io/selected-node"
	annotationBy        = "pv.kubernetes.io/provisioned-by"
)

// Reasons of events. Other provisioners use the same reasons.
const (
	eventFailed    = "ProvisioningFailed"
	eventSucceeded = "ProvisioningSucceeded"
	eventNotGone   = "VolumeFailedDelete"
)

// nameOf returns the name of the volume of a claim, and of its directory.
func nameOf(uid string) string { return "pvc-" + uid }

// wantsVolume reports whether a claim waits for a volume of this node.
func (c *Controller) wantsVolume(claim *corev1.PersistentVolumeClaim) bool {
	a := claim.Annotations
	return (a[annotationDriver] == Driver || a[annotationDriverOld] == Driver) && a[annotationNode] == c.cfg.Node &&
		claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil && claim.UID != ""
}

// provisionClaim makes the volume of a claim, if it waits for one.
func (c *Controller) provisionClaim(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	claim, err := c.claims.PersistentVolumeClaims(namespace).Get(name)
	if apierrors.IsNotFound(err) || err == nil && !c.wantsVolume(claim) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.recordError(claim, eventFailed, c.makeVolume(ctx, claim))
}

// makeVolume first makes the directory and then the object. Each may already exist.
func (c *Controller) makeVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	class, err := c.storageClass(ctx, claim)
	if err != nil {
		return err
	}
	name := nameOf(string(claim.UID))
	path, err := c.cfg.Make(ctx, name)
	if err != nil {
		return fmt.Errorf("make the directory of volume %s: %w", name, err)
	}
	_, err = c.cfg.Client.CoreV1().PersistentVolumes().Create(ctx, c.volumeObject(claim, class, path), metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil // a killed process made the volume, or the cached claim is outdated
	case err != nil:
		return fmt.Errorf("make volume %s: %w", name, err)
	}
	c.cfg.Recorder.Event(claim, corev1.EventTypeNormal, eventSucceeded, "Successfully provisioned volume "+name)
	log.G(ctx).WithField("volume", name).Info("made a local volume")
	return nil
}

// storageClass returns the StorageClass of a claim, or an error if this node does not support the settings of the claim or its class.
func (c *Controller) storageClass(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*storagev1.StorageClass, error) {
	no := func(field, why string) (*storagev1.StorageClass, error) {
		return nil, refused{fmt.Errorf("%s: %s", field, why)}
	}
	switch spec := &claim.Spec; {
	case spec.StorageClassName == nil || *spec.StorageClassName == "":
		return no("spec.storageClassName", "there is none")
	case spec.VolumeMode != nil && *spec.VolumeMode != corev1.PersistentVolumeFilesystem:
		return no("spec.volumeMode", "a directory of the machine is no block device")
	case spec.Selector != nil:
		return no("spec.selector", "a volume that is made for the claim has nothing to select by")
	case spec.DataSource != nil || spec.DataSourceRef != nil:
		return no("spec.dataSource", "volumes begin empty")
	}
	for _, mode := range claim.Spec.AccessModes {
		if mode != corev1.ReadWriteOnce && mode != corev1.ReadWriteOncePod {
			return no("spec.accessModes", fmt.Sprintf("a directory of one machine cannot be %s", mode))
		}
	}
	class, err := c.cfg.Client.StorageV1().StorageClasses().Get(ctx, *claim.Spec.StorageClassName, metav1.GetOptions{})
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the StorageClass: %w", err)
	case class.Provisioner != Driver:
		return no("spec.storageClassName", fmt.Sprintf("the provisioner of StorageClass %s is %s", class.Name, class.Provisioner))
	case len(class.MountOptions) > 0:
		return no("mountOptions of StorageClass "+class.Name, "a directory is mounted without options")
	case len(class.Parameters) > 0:
		return no("parameters of StorageClass "+class.Name, "there are none")
	}
	return class, nil
}

// volumeObject returns the object for the volume of a claim.
func (c *Controller) volumeObject(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, path string) *corev1.PersistentVolume {
	policy := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		policy = *class.ReclaimPolicy
	}
	mode := corev1.PersistentVolumeFilesystem
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: nameOf(string(claim.UID)), Labels: map[string]string{NodeLabel: c.cfg.Node}, Annotations: map[string]string{annotationBy: Driver},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes: claim.Spec.AccessModes, VolumeMode: &mode,
			PersistentVolumeReclaimPolicy: policy, StorageClassName: class.Name,
			ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{c.cfg.Hostname}}},
			}}}},
		},
	}
}
