// SPDX-License-Identifier: Apache-2.0

package podinputs

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// PodCertificates gives keys with certificates for pods of this node. It can be used from any goroutine.
type PodCertificates interface {
	// Certificate returns what a source of a projected volume asks for. Of the pod only namespace, name and UID count; a
	// source that no volume of the pod has is an error of the kind invalid-input, and a pod that is not this node's, or has
	// ended, one of the kind not-found. had is what the volume has from an earlier process, the key and then the
	// certificates, in PEM: if that is valid it is returned, and nobody is asked; nil if there is nothing.
	//
	// A new key and a PodCertificateRequest are made when there is no certificate, and when the signer wants the
	// next one to be asked for. A certificate that is not issued yet is an error: ask again. A request that is denied or
	// failed is final for the pod, and the error has the signer's reason. While the next certificate is not there, the old
	// one is returned for as long as it is valid. A provider that keeps files up to date asks again and again.
	Certificate(ctx context.Context, pod *corev1.Pod, source *corev1.PodCertificateProjection, had []byte) (PodCertificate, error)
}

// PodCertificate is a key with its certificate. Formatting and JSON leave the key out.
type PodCertificate struct {
	// Key is the key, a PEM block PRIVATE KEY with PKCS #8.
	Key []byte `json:"-"`
	// Chain is the certificate and those below it, in PEM.
	Chain []byte
	// ExpiresAt is the end of the certificate's life.
	ExpiresAt time.Time
}

// String says until when the certificate is valid.
func (p PodCertificate) String() string {
	return "certificate until " + p.ExpiresAt.UTC().Format(time.RFC3339)
}

// GoString is String.
func (p PodCertificate) GoString() string { return p.String() }
