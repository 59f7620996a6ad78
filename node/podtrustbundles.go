// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/trustbundles"
	"github.com/virtual-kubelet/virtual-kubelet/internal/podsecrets"
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

// errNoCertificates is the answer of a node whose client asks for pods only.
var errNoCertificates = errors.New("this node has no client that asks for certificates.k8s.io")

// podTrustBundles is what a PodTrustBundlesUser is given.
type podTrustBundles struct {
	secrets *podsecrets.Manager
	reader  *trustbundles.Reader // nil: the client reads none
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
