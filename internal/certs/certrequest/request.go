// SPDX-License-Identifier: Apache-2.0

package certrequest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/client-go/util/keyutil"
)

const (
	// firstLook and maxLook bound the interval of checks of a request.
	firstLook = 200 * time.Millisecond
	maxLook   = 5 * time.Second
	// callTimeout bounds one call of the API server.
	callTimeout = 30 * time.Second
)

// errOtherTemplate ends a request whose content is outdated.
var errOtherTemplate = errors.New("another certificate is wanted by now")

// refusal is an unsuccessful request.
type refusal struct {
	reason  Reason
	request string
	text    string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("certificate signing request %s: %s", r.request, r.text)
}

// requestCertificate requests a certificate, waits for it, and uses it from then on.
func (m *Manager) requestCertificate(ctx context.Context, template *x509.CertificateRequest) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make key: %w", err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return fmt.Errorf("encode key: %w", err)
	}
	asked := *template // the encoder changes fields of its argument
	body, err := cert.MakeCSRFromTemplate(key, &asked)
	if err != nil {
		return fmt.Errorf("make certificate signing request: %w", err)
	}
	current := m.Current()
	client, err := m.cfg.Client(current != nil)
	if err != nil {
		return fmt.Errorf("ask for certificate: %w", err)
	}
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	name, uid, err := csr.RequestCertificateWithContext(callCtx, client, body, "", m.cfg.Signer, nil, m.cfg.Usages, key)
	cancel()
	if err != nil {
		return err
	}
	certPEM, err := m.awaitAnswer(ctx, client, template, name, uid)
	if err != nil {
		return err
	}
	fresh, err := m.cfg.Store.Update(certPEM, keyPEM)
	if err != nil {
		return fmt.Errorf("keep certificate: %w", err)
	}
	if !time.Now().Before(fresh.Leaf.NotAfter) {
		return &refusal{reason: Failed, request: name, text: fmt.Sprintf("the certificate that was granted has ended at %s: is the clock right?", fresh.Leaf.NotAfter.UTC().Format(time.RFC3339))}
	}
	m.asked = template
	m.useCertificate(fresh, time.Now().Add(time.Until(fresh.Leaf.NotAfter)/2))
	if current != nil {
		m.cfg.Metrics.recordRotation(time.Since(current.Leaf.NotBefore))
	}
	return nil
}

// awaitAnswer polls a request until it is granted, refused, gone, or no longer needed.
func (m *Manager) awaitAnswer(ctx context.Context, client kubernetes.Interface, template *x509.CertificateRequest, name string, uid types.UID) ([]byte, error) {
	look := wait.Backoff{Duration: firstLook, Factor: 1.5, Jitter: 0.1, Steps: 100, Cap: maxLook}
	for began := time.Now(); ; {
		m.wait(ctx, time.Now().Add(look.Step()))
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if now := m.cfg.Template(); now == nil || !equalTemplates(now, template) {
			return nil, errOtherTemplate
		}
		callCtx, cancel := context.WithTimeout(ctx, callTimeout)
		request, err := client.CertificatesV1().CertificateSigningRequests().Get(callCtx, name, metav1.GetOptions{})
		cancel()
		switch {
		case err == nil && request.UID == uid:
			if certPEM, err := readAnswer(request); certPEM != nil || err != nil {
				return certPEM, err
			}
		case err == nil, apierrors.IsNotFound(err):
			return nil, &refusal{reason: Failed, request: name, text: "it was deleted before anybody approved or denied it"}
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return nil, fmt.Errorf("look at certificate signing request %s: %w", name, err)
		}
		if time.Since(began) >= patience {
			m.reportState(ctx, State{Reason: Pending, Request: name})
		}
	}
}

// readAnswer returns the certificate of a request, or the reason why there will be none, or neither while the request is pending.
func readAnswer(request *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	approved := false
	for _, c := range request.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateDenied:
			return nil, &refusal{reason: Denied, request: request.Name, text: fmt.Sprintf("it was denied (%s: %s)", c.Reason, c.Message)}
		case certificatesv1.CertificateFailed:
			return nil, &refusal{reason: Failed, request: request.Name, text: fmt.Sprintf("the signer failed (%s: %s)", c.Reason, c.Message)}
		case certificatesv1.CertificateApproved:
			approved = true
		}
	}
	if !approved || len(request.Status.Certificate) == 0 {
		return nil, nil
	}
	return request.Status.Certificate, nil
}
