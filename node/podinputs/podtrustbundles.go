// SPDX-License-Identifier: Apache-2.0

package podinputs

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// PodTrustBundles reads ClusterTrustBundles for pods of this node. It can be used from any goroutine.
type PodTrustBundles interface {
	// TrustBundle returns the certificates that a source of a projected volume selects, in PEM: each once, without
	// comments and headers, in an order that stays the same and means nothing. If there is no such bundle, it is an
	// error in a kubelet's words, or no certificates if the source is optional; any other error says nothing about what
	// exists. A pod that is not this node's, or has ended, is an error of the kind not-found.
	//
	// What is returned is up to 30 s old, or older while the API server does not answer: a provider that keeps a
	// file up to date asks again. It is shared: do not change it.
	TrustBundle(ctx context.Context, pod *corev1.Pod, source *corev1.ClusterTrustBundleProjection) ([]byte, error)
}
