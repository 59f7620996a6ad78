// SPDX-License-Identifier: Apache-2.0

package certapi_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/certapi"
)

const wanted = "podcertificaterequests"

func request(key crypto.Signer) certapi.Request {
	return certapi.Request{
		Pod:     &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "pod-uid"}},
		Source:  &corev1.PodCertificateProjection{SignerName: "s.example/x", UserAnnotations: map[string]string{"s.example/a": "b"}},
		Account: "sa", AccountUID: "sa-uid", Node: "n", NodeUID: "node-uid", Key: key,
	}
}

func keys(t *testing.T) map[string]crypto.Signer {
	t.Helper()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rsa.GenerateKey(rand.Reader, 3072)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]crypto.Signer{"ED25519": ed, "ECDSAP384": ec, "RSA3072": r}
}

// TestARequestProvesThatTheKeyIsOurs checks the sent request as an API server does, in both versions of the API.
func TestARequestProvesThatTheKeyIsOurs(t *testing.T) {
	for kind, key := range keys(t) {
		for _, version := range []string{"v1", "v1beta1"} {
			t.Run(kind+" "+version, func(t *testing.T) {
				s := &server{served: map[string][]string{version: {wanted}}}
				if name, err := s.api(t).Ask(t.Context(), request(key)); name != "made" || err != nil {
					t.Fatalf("got %q, %v", name, err)
				}
				if asked := s.questions(); asked != "POST "+version+"/namespaces/ns/"+wanted+" " {
					t.Errorf("asked %q", asked)
				}
				var got struct {
					certificatesv1beta1.PodCertificateRequest
					Spec struct {
						certificatesv1beta1.PodCertificateRequestSpec
						StubPKCS10Request []byte `json:"stubPKCS10Request"`
					} `json:"spec"`
				}
				if err := json.Unmarshal(s.posted, &got); err != nil {
					t.Fatal(err)
				}
				want := certificatesv1beta1.PodCertificateRequestSpec{
					SignerName: "s.example/x", PodName: "p", PodUID: "pod-uid", ServiceAccountName: "sa", ServiceAccountUID: "sa-uid",
					NodeName: "n", NodeUID: "node-uid", MaxExpirationSeconds: ptr.To[int32](86400), UnverifiedUserAnnotations: map[string]string{"s.example/a": "b"},
				}
				sent := got.Spec.PodCertificateRequestSpec
				public, proof := sent.PKIXPublicKey, sent.ProofOfPossession
				sent.PKIXPublicKey, sent.ProofOfPossession = nil, nil
				if diff := cmp.Diff(want, sent); diff != "" {
					t.Error(diff)
				}
				if got.GenerateName == "" || got.APIVersion != "certificates.k8s.io/"+version || got.Kind != "PodCertificateRequest" ||
					len(got.OwnerReferences) != 1 || got.OwnerReferences[0].UID != "pod-uid" {
					t.Errorf("sent %+v, want a new name, and the pod as the owner", got.PodCertificateRequest)
				}
				if version == "v1" {
					csr, err := x509.ParseCertificateRequest(got.Spec.StubPKCS10Request)
					if err != nil || csr.CheckSignature() != nil || !isOf(csr.PublicKey, key) || csr.Subject.String() != "" || len(public)+len(proof) > 0 {
						t.Errorf("%v: want an empty request that the key signed, and no other proof", err)
					}
					return
				}
				parsed, err := x509.ParsePKIXPublicKey(public)
				if err != nil || !isOf(parsed, key) || !proves(parsed, proof) || len(got.Spec.StubPKCS10Request) > 0 {
					t.Errorf("%v: want the key with a signature of the UID of the pod, and no request of PKCS #10", err)
				}
			})
		}
	}
}

func isOf(public crypto.PublicKey, key crypto.Signer) bool {
	p, ok := public.(interface{ Equal(crypto.PublicKey) bool })
	return ok && p.Equal(key.Public())
}

// proves checks a proof as an API server does.
func proves(public crypto.PublicKey, proof []byte) bool {
	uid := []byte("pod-uid")
	digest := sha256.Sum256(uid)
	switch public := public.(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(public, uid, proof)
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(public, digest[:], proof)
	case *rsa.PublicKey:
		return rsa.VerifyPSS(public, crypto.SHA256, digest[:], proof, nil) == nil
	}
	return false
}

// TestSecurityD1TheKeyOfACertificateIsNotSent: a request does not contain the private key, because other users
// may read requests.
func TestSecurityD1TheKeyOfACertificateIsNotSent(t *testing.T) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{served: map[string][]string{"v1": {wanted}}}
	if _, err := s.api(t).Ask(t.Context(), request(key)); err != nil {
		t.Fatal(err)
	}
	var sent struct {
		Spec map[string]any `json:"spec"`
	}
	if err := json.Unmarshal(s.posted, &sent); err != nil {
		t.Fatal(err)
	}
	for name, value := range sent.Spec {
		var raw []byte
		if text, ok := value.(string); !ok || json.Unmarshal([]byte(`"`+text+`"`), &raw) != nil {
			continue
		}
		if bytes.Contains(raw, key.Seed()) {
			t.Errorf("the key is in %s", name)
		}
	}
}

func TestAnswers(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	pcr := func(name string, conditions ...metav1.Condition) certificatesv1beta1.PodCertificateRequest {
		return certificatesv1beta1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: certificatesv1beta1.PodCertificateRequestStatus{
			Conditions: conditions, CertificateChain: "chain of " + name, BeginRefreshAt: &at,
		}}
	}
	s := &server{served: map[string][]string{"v1": {wanted}}, lists: map[string]any{"v1/namespaces/ns/" + wanted: []any{
		pcr("other", metav1.Condition{Type: "Denied", Status: metav1.ConditionTrue}),
		pcr("open", metav1.Condition{Type: "Denied", Status: metav1.ConditionFalse}, metav1.Condition{Type: "Seen", Status: metav1.ConditionTrue}),
		pcr("issued", metav1.Condition{Type: "Issued", Status: metav1.ConditionTrue, Reason: "R", Message: "M"}),
	}}}
	api := s.api(t)
	for name, want := range map[string]certapi.Answer{
		"gone":   {},
		"open":   {Found: true, Chain: "chain of open", BeginRefreshAt: at},
		"issued": {Found: true, Condition: certapi.Issued, Reason: "R", Message: "M", Chain: "chain of issued", BeginRefreshAt: at},
	} {
		got, err := api.Answer(t.Context(), "ns", "n", name)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
		if asked := s.questions(); asked != "GET v1/namespaces/ns/"+wanted+" fieldSelector=metadata.name%3D"+name+"%2Cspec.nodeName%3Dn" {
			t.Errorf("asked %q, want what the Node authorizer allows", asked)
		}
	}
}
