// SPDX-License-Identifier: Apache-2.0

package podinputs

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// PodCertificates gives keys with certificates for pods of this node. It can be used from any goroutine.
type PodCertificates interface {
	// Certificate returns the certificate for a source of a projected volume. Of the pod only namespace, name
	// and UID count. A source that no volume of the pod has is an error of the kind invalid-input. A pod of
	// another node, or an ended pod, is an error of the kind not-found. had is the volume's file from an earlier
	// process, the key and then the certificates, in PEM, or nil. If had is valid, Certificate returns it
	// without a request.
	//
	// If there is no certificate, or if the signer wants the next one to be requested, Certificate makes a new
	// key and a PodCertificateRequest. A certificate that is not issued yet is an error: ask again. A denied or
	// failed request is final for the pod, and the error has the signer's reason. Until the next certificate is
	// issued, Certificate returns the old one for as long as it is valid. A provider with up-to-date files asks
	// again and again.
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
