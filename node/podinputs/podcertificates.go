// SPDX-License-Identifier: Apache-2.0

package podinputs

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// PodCertificates provides keys with certificates for pods of this node. It is safe for concurrent use.
type PodCertificates interface {
	// Certificate returns the certificate for a source of a projected volume. Only the namespace, name and UID of pod are used. The error
	// is of the kind invalid-input if no volume of the pod has the source, and of the kind not-found for a pod of another node or an ended
	// pod. had is the volume's file from an earlier process in PEM, first the key and then the certificates, or nil. If had is valid,
	// Certificate returns it without a request.
	//
	// If there is no certificate, or if it is time for the next one, Certificate creates a new key and a PodCertificateRequest. If the
	// certificate is not issued yet, it returns an error, and the caller must retry. A denied or failed request is final for the pod, and
	// the error contains the signer's reason. Until the next certificate is issued, Certificate returns the old one while it is valid.
	// Providers call it repeatedly to keep their files up to date.
	Certificate(ctx context.Context, pod *corev1.Pod, source *corev1.PodCertificateProjection, had []byte) (PodCertificate, error)
}

// PodCertificate is a key with its certificate. Formatting and JSON leave the key out.
type PodCertificate struct {
	// Key is the key, a PEM block PRIVATE KEY with PKCS #8.
	Key []byte `json:"-"`
	// Chain is the certificate and its intermediates, in PEM.
	Chain []byte
	// ExpiresAt is the end of the certificate's validity.
	ExpiresAt time.Time
}

// String returns the end of the certificate's validity as text.
func (p PodCertificate) String() string {
	return "certificate until " + p.ExpiresAt.UTC().Format(time.RFC3339)
}

// GoString returns the same as String.
func (p PodCertificate) GoString() string { return p.String() }
