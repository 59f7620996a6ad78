// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/podsecrets"
	"github.com/virtual-kubelet/virtual-kubelet/node/podinputs"
)

// PodTokens provides tokens for pods of this node. It is safe for concurrent use.
type PodTokens = podinputs.PodTokens

// PodToken is a token of the service account of a pod, bound to the pod. Formatting and JSON leave the
// token itself out.
type PodToken = podinputs.PodToken

// podTokens implements PodTokens for a PodTokensUser.
type podTokens struct{ manager *podsecrets.Manager }

// Token returns a token.
func (p podTokens) Token(ctx context.Context, pod *corev1.Pod, source *corev1.ServiceAccountTokenProjection) (PodToken, error) {
	token, err := p.manager.Token(ctx, pod, source)
	if err != nil {
		return PodToken{}, err
	}
	return PodToken{Token: token.Value, ExpiresAt: token.ExpiresAt, RefreshAt: token.RefreshAt}, nil
}
