// SPDX-License-Identifier: Apache-2.0

package testpki

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// Signer answers CertificateSigningRequests to a client in memory, as its test decides.
type Signer struct {
	authority *Authority

	mu       sync.Mutex
	mode     certificatesv1.RequestConditionType // "": requests stay unanswered
	life     time.Duration
	requests []*certificatesv1.CertificateSigningRequest
}

// Attach returns a signer for client. It approves everything for an hour.
func (a *Authority) Attach(client *fake.Clientset) *Signer {
	s := &Signer{authority: a, mode: certificatesv1.CertificateApproved, life: time.Hour}
	const resource = "certificatesigningrequests"
	client.PrependReactor("create", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		request := action.(clienttesting.CreateAction).GetObject().(*certificatesv1.CertificateSigningRequest).DeepCopy()
		err := s.takeRequest(request)
		return true, request, err
	})
	client.PrependReactor("get", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		request, err := s.get(action.(clienttesting.GetAction).GetName())
		return true, request, err
	})
	return s
}

// Answer makes s issue certificates for life, or deny, or with the empty mode do nothing. It applies also to
// requests without an answer yet.
func (s *Signer) Answer(t testing.TB, mode certificatesv1.RequestConditionType, life time.Duration) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode, s.life = mode, life
	for _, request := range s.requests {
		if err := s.answerRequest(request); err != nil {
			t.Fatal(err)
		}
	}
}

// Requests returns all requests so far.
func (s *Signer) Requests() []*certificatesv1.CertificateSigningRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*certificatesv1.CertificateSigningRequest(nil), s.requests...)
}

// Forget deletes all requests.
func (s *Signer) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

func (s *Signer) takeRequest(request *certificatesv1.CertificateSigningRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<32))
	if err != nil {
		return err
	}
	request.Name = fmt.Sprintf("%s%08x", request.GenerateName, serial)
	request.UID = types.UID(request.Name)
	s.requests = append(s.requests, request)
	return s.answerRequest(request)
}

func (s *Signer) get(name string) (*certificatesv1.CertificateSigningRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, request := range s.requests {
		if request.Name == name {
			return request.DeepCopy(), nil
		}
	}
	return nil, apierrors.NewNotFound(certificatesv1.Resource("certificatesigningrequests"), name)
}

// answerRequest answers a request in the present mode. The caller holds mu.
func (s *Signer) answerRequest(request *certificatesv1.CertificateSigningRequest) error {
	if s.mode == "" || len(request.Status.Conditions) > 0 {
		return nil
	}
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: s.mode, Status: corev1.ConditionTrue, Reason: "ByTest", Message: "the test wants it"},
	}
	if s.mode != certificatesv1.CertificateApproved {
		return nil
	}
	var err error
	request.Status.Certificate, err = s.authority.Sign(request.Spec.Request, s.life)
	return err
}

// Sign returns the certificate for a request in PEM, good for servers and clients from now on.
func (a *Authority) Sign(request []byte, life time.Duration) ([]byte, error) {
	block, _ := pem.Decode(request)
	if block == nil {
		return nil, errors.New("the request is not PEM")
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	if err := asked.CheckSignature(); err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: asked.Subject, DNSNames: asked.DNSNames, IPAddresses: asked.IPAddresses,
		NotBefore: now, NotAfter: now.Add(life),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.Cert, asked.PublicKey, a.Key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
