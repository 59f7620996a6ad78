// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkRequests finds pending or refused certificate requests of this node. Only the last request to each signer counts: older requests no
// longer matter.
func checkRequests(ctx context.Context, e *exam) {
	for _, signer := range []string{certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName} {
		list, err := e.client.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{FieldSelector: "spec.signerName=" + signer})
		switch {
		case apierrors.IsForbidden(err):
			e.skip("%s may not list CertificateSigningRequests", e.who())
			return
		case err != nil:
			e.unknown(fmt.Errorf("list CertificateSigningRequests: %w", err))
			return
		}
		var last *certificatesv1.CertificateSigningRequest
		for i := range list.Items {
			csr := &list.Items[i]
			if commonName(csr) == nodeUser+e.NodeName && (last == nil || last.CreationTimestamp.Before(&csr.CreationTimestamp)) {
				last = csr
			}
		}
		if last != nil {
			e.judge(last)
		}
	}
}

func (e *exam) judge(csr *certificatesv1.CertificateSigningRequest) {
	what := fmt.Sprintf("the request %s for a certificate of %s", csr.Name, csr.Spec.SignerName)
	approved := false
	for _, c := range csr.Status.Conditions {
		if c.Status == corev1.ConditionFalse {
			continue
		}
		switch c.Type {
		case certificatesv1.CertificateDenied:
			e.found("see who denied it and why, delete the request, and start the node anew to ask again", "%s was denied: %s: %s", what, c.Reason, c.Message)
			return
		case certificatesv1.CertificateFailed:
			e.found("check that the request has only the names and addresses of the node, because the signer grants no others", "%s has failed: %s: %s", what, c.Reason, c.Message)
			return
		case certificatesv1.CertificateApproved:
			approved = true
		}
	}
	since := e.clock.now().Sub(csr.CreationTimestamp.Time).Round(time.Second)
	switch {
	case !approved:
		fix := "approve it: kubectl certificate approve " + csr.Name
		if csr.Spec.SignerName == certificatesv1.KubeletServingSignerName {
			fix += "; Kubernetes never does so itself for serving certificates: run an approver for them"
		}
		e.found(fix, "%s waits for approval since %s", what, since)
	case len(csr.Status.Certificate) == 0 && since > time.Minute:
		e.found("see that kube-controller-manager runs with --cluster-signing-cert-file and --cluster-signing-key-file",
			"%s was approved, and after %s no signer has issued it", what, since)
	}
}

// commonName returns the common name of the requested certificate; "" if it cannot be read.
func commonName(csr *certificatesv1.CertificateSigningRequest) string {
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil {
		return ""
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return ""
	}
	return request.Subject.CommonName
}
