// SPDX-License-Identifier: Apache-2.0

package podinputs

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// PodTrustBundles reads ClusterTrustBundles for pods of this node. It is safe for concurrent use.
type PodTrustBundles interface {
	// TrustBundle returns the certificates selected by a source of a projected volume, in PEM: each once, without comments and headers, in
	// a stable but arbitrary order. If there is no such bundle, it returns an error with a kubelet's text, or no certificates if the source
	// is optional. Any other error means that it is unknown whether the bundle exists. For a pod of another node or an ended pod, the error
	// is of the kind not-found.
	//
	// The certificates are up to 30 s old, or older while the API server does not answer: providers call TrustBundle repeatedly to keep
	// their files up to date. The result is shared: do not change it.
	TrustBundle(ctx context.Context, pod *corev1.Pod, source *corev1.ClusterTrustBundleProjection) ([]byte, error)
}
