// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/podcerts"
	"github.com/virtual-kubelet/virtual-kubelet/internal/podsecrets"
	"github.com/virtual-kubelet/virtual-kubelet/node/podinputs"
)

// PodCertificates provides keys with certificates for pods of this node. It is safe for concurrent use.
type PodCertificates = podinputs.PodCertificates

// PodCertificate is a key with its certificate. Formatting and JSON leave the key out.
type PodCertificate = podinputs.PodCertificate

// podCertificates implements PodCertificates for a PodCertificatesUser.
type podCertificates struct {
	secrets *podsecrets.Manager
	manager *podcerts.Manager // nil: the client cannot request certificates
}

// Certificate returns a certificate for a pod of this node, unless the pod has ended in the meantime.
func (p podCertificates) Certificate(ctx context.Context, pod *corev1.Pod, source *corev1.PodCertificateProjection, had []byte) (PodCertificate, error) {
	if p.manager == nil {
		return PodCertificate{}, errNoCertificates
	}
	api, err := p.secrets.Pod(pod)
	if err != nil {
		return PodCertificate{}, err
	}
	got, err := p.manager.Get(ctx, api, source, had)
	if err != nil {
		return PodCertificate{}, err
	}
	if _, err := p.secrets.Pod(pod); err != nil {
		p.manager.Forget(pod.UID)
		return PodCertificate{}, err
	}
	return PodCertificate{Key: got.Key, Chain: got.Chain, ExpiresAt: got.ExpiresAt}, nil
}
