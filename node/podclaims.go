// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/podclaims"
	"github.com/virtual-kubelet/virtual-kubelet/internal/podsecrets"
	"github.com/virtual-kubelet/virtual-kubelet/node/podinputs"
)

// PodClaims finds the PersistentVolumes of pods of this node. It is safe for concurrent use.
type PodClaims = podinputs.PodClaims

// podClaims implements PodClaims for a PodClaimsUser.
type podClaims struct {
	secrets *podsecrets.Manager
	reader  *podclaims.Reader // nil: the client cannot read them
}

var errNoClaims = errors.New("this node has no client that reads PersistentVolumes")

// PersistentVolume finds the volume for a pod of this node.
func (p podClaims) PersistentVolume(ctx context.Context, pod *corev1.Pod, volume string) (*corev1.PersistentVolume, error) {
	if p.reader == nil {
		return nil, errNoClaims
	}
	api, err := p.secrets.Pod(pod)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, podRequestTimeout)
	defer cancel()
	return p.reader.Find(ctx, api, volume)
}
