// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/trustbundles"
	"github.com/virtual-kubelet/virtual-kubelet/internal/providercall"
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

// podTrustBundles is what a PodTrustBundlesUser is given.
type podTrustBundles struct {
	c      *PodController
	reader *trustbundles.Reader // nil: the client reads none
}

// TrustBundle reads bundles for a pod of this node.
func (p podTrustBundles) TrustBundle(ctx context.Context, pod *corev1.Pod, source *corev1.ClusterTrustBundleProjection) ([]byte, error) {
	if p.reader == nil {
		return nil, errNoCertificates
	}
	if _, err := p.c.secrets.Pod(pod); err != nil {
		return nil, err
	}
	return p.reader.Read(ctx, source)
}

// offerTrustBundles tells a provider that wants to know where it gets trust bundles.
func (c *PodController) offerTrustBundles(ctx context.Context) error {
	user, ok := c.provider.(PodTrustBundlesUser)
	if !ok {
		return nil
	}
	return (&providercall.Caller{}).Do(ctx, "UsePodTrustBundles", func(context.Context) error {
		user.UsePodTrustBundles(c.bundles)
		return nil
	})
}
