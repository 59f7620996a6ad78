// SPDX-License-Identifier: Apache-2.0

package podclaims

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// Reader reads claims and volumes from the API server. All fields are required.
type Reader struct {
	Claim  func(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	Volume func(ctx context.Context, name string) (*corev1.PersistentVolume, error)
	Node   func(ctx context.Context) (*corev1.Node, error)
}

// Find returns the PersistentVolume of a volume in the pod, given the volume's name. pod is the API server's copy. If the pod has no such volume, or
// the volume has no claim, the error is of the kind invalid-input.
func (r Reader) Find(ctx context.Context, pod *corev1.Pod, volume string) (*corev1.PersistentVolume, error) {
	name, ephemeral := claimOf(pod, volume)
	if name == "" {
		return nil, errdefs.InvalidInputf("pod %s/%s has no volume %q that claims a PersistentVolume", pod.Namespace, pod.Name, volume)
	}
	claim, err := r.checkedClaim(ctx, pod, name, ephemeral)
	if err != nil {
		return nil, fmt.Errorf("error processing PVC %s/%s: %w", pod.Namespace, name, err)
	}
	found, err := r.checkedVolume(ctx, claim)
	if err != nil {
		return nil, fmt.Errorf("error processing PVC %s/%s: %w", pod.Namespace, name, err)
	}
	if err := r.checkAffinity(ctx, found); err != nil {
		return nil, fmt.Errorf("MountVolume.NodeAffinity check failed for volume %q : %w", found.Name, err)
	}
	return found, nil
}

// claimOf returns the name of the claim of a volume, or "". The claim of an ephemeral volume belongs to the pod.
func claimOf(pod *corev1.Pod, volume string) (name string, ephemeral bool) {
	for i := range pod.Spec.Volumes {
		switch v := &pod.Spec.Volumes[i]; {
		case v.Name != volume:
		case v.PersistentVolumeClaim != nil:
			return v.PersistentVolumeClaim.ClaimName, false
		case v.Ephemeral != nil:
			return pod.Name + "-" + v.Name, true
		}
	}
	return "", false
}

func (r Reader) checkedClaim(ctx context.Context, pod *corev1.Pod, name string, ephemeral bool) (*corev1.PersistentVolumeClaim, error) {
	claim, err := r.Claim(ctx, pod.Namespace, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("failed to fetch PVC from API server: %w", err)
	case ephemeral && !metav1.IsControlledBy(claim, pod):
		return nil, fmt.Errorf("PVC %s/%s was not created for pod %s/%s (pod is not owner)", pod.Namespace, name, pod.Namespace, pod.Name)
	case claim.DeletionTimestamp != nil:
		return nil, errors.New("PVC is being deleted")
	case claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "":
		return nil, errors.New("PVC is not bound")
	}
	return claim, nil
}

func (r Reader) checkedVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	found, err := r.Volume(ctx, claim.Spec.VolumeName)
	switch {
	case err != nil:
		return nil, fmt.Errorf("failed to fetch PV %s from API server: %w", claim.Spec.VolumeName, err)
	case found.Spec.ClaimRef == nil:
		return nil, fmt.Errorf("found PV object %s but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim", found.Name)
	case found.Spec.ClaimRef.UID != claim.UID:
		return nil, fmt.Errorf("found PV object %s but its pv.Spec.ClaimRef.UID %s does not point to claim.UID %s", found.Name, found.Spec.ClaimRef.UID, claim.UID)
	}
	return found, nil
}

// checkAffinity returns an error if the node affinity of a volume excludes this node.
func (r Reader) checkAffinity(ctx context.Context, volume *corev1.PersistentVolume) error {
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return nil
	}
	selector, err := nodeaffinity.NewNodeSelector(volume.Spec.NodeAffinity.Required)
	if err != nil {
		return err
	}
	node, err := r.Node(ctx)
	if err != nil {
		return fmt.Errorf("read the node: %w", err)
	}
	if !selector.Match(node) {
		return errors.New("no matching NodeSelectorTerms")
	}
	return nil
}
