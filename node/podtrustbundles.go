// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/trustbundles"
	"github.com/virtual-kubelet/virtual-kubelet/internal/podsecrets"
	"github.com/virtual-kubelet/virtual-kubelet/node/podinputs"
)

// PodTrustBundles reads ClusterTrustBundles for pods of this node. It is safe for concurrent use.
type PodTrustBundles = podinputs.PodTrustBundles

// errNoCertificates is the error if the node's client has only the core API.
var errNoCertificates = errors.New("this node has no client that asks for certificates.k8s.io")

// podTrustBundles implements PodTrustBundles for a PodTrustBundlesUser.
type podTrustBundles struct {
	secrets *podsecrets.Manager
	reader  *trustbundles.Reader // nil: the client cannot read bundles
}

// TrustBundle reads bundles for a pod of this node.
func (p podTrustBundles) TrustBundle(ctx context.Context, pod *corev1.Pod, source *corev1.ClusterTrustBundleProjection) ([]byte, error) {
	if p.reader == nil {
		return nil, errNoCertificates
	}
	if _, err := p.secrets.Pod(pod); err != nil {
		return nil, err
	}
	return p.reader.Read(ctx, source)
}
