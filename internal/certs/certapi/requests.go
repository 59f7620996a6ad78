// SPDX-License-Identifier: Apache-2.0

package certapi

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

const requests = "podcertificaterequests"

// defaultLife is the default maximum lifetime of a certificate in seconds, as in the API server.
const defaultLife = 86400

// Conditions that end a request.
const (
	Issued = "Issued"
	Denied = "Denied"
	Failed = "Failed"
)

// Request has the content of a request for a certificate.
type Request struct {
	// Pod gets the certificate for Source, a source of its volume.
	Pod    *corev1.Pod
	Source *corev1.PodCertificateProjection
	// Account is the service account of the pod, and AccountUID its UID.
	Account    string
	AccountUID types.UID
	// Node is the node of the pod, and NodeUID its UID.
	Node    string
	NodeUID types.UID
	// Key is the key of the certificate. It is not sent: the request has the public key, and a proof of possession.
	Key crypto.Signer
}

// Answer is the state of a request.
type Answer struct {
	// Found reports whether the request exists.
	Found bool
	// Condition is Issued, Denied or Failed; "" before the decision.
	Condition, Reason, Message string
	// Chain is the certificate and its intermediate certificates, in PEM.
	Chain string
	// BeginRefreshAt is the time from which the signer accepts a request for the next certificate; or zero if it reports none.
	BeginRefreshAt metav1.Time
}

// spec is the spec of a PodCertificateRequest. v1 has a PKCS #10 request, v1beta1 the public key and the proof.
type spec struct {
	SignerName                string            `json:"signerName"`
	PodName                   string            `json:"podName"`
	PodUID                    types.UID         `json:"podUID"`
	ServiceAccountName        string            `json:"serviceAccountName"`
	ServiceAccountUID         types.UID         `json:"serviceAccountUID"`
	NodeName                  string            `json:"nodeName"`
	NodeUID                   types.UID         `json:"nodeUID"`
	MaxExpirationSeconds      int32             `json:"maxExpirationSeconds"`
	StubPKCS10Request         []byte            `json:"stubPKCS10Request,omitempty"`
	PKIXPublicKey             []byte            `json:"pkixPublicKey,omitempty"`
	ProofOfPossession         []byte            `json:"proofOfPossession,omitempty"`
	UnverifiedUserAnnotations map[string]string `json:"unverifiedUserAnnotations,omitempty"`
}

// object is a PodCertificateRequest.
type object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              spec `json:"spec"`
	Status            struct {
		Conditions       []metav1.Condition `json:"conditions,omitempty"`
		CertificateChain string             `json:"certificateChain,omitempty"`
		BeginRefreshAt   metav1.Time        `json:"beginRefreshAt,omitzero"`
	} `json:"status,omitzero"`
}

// Ask creates a PodCertificateRequest in the namespace of the pod, and returns its name. The request is deleted with the pod.
func (a *API) Ask(ctx context.Context, r Request) (string, error) {
	version, err := a.servedVersion(ctx, requests)
	if err != nil {
		return "", err
	}
	o := object{TypeMeta: metav1.TypeMeta{APIVersion: group + "/" + version, Kind: "PodCertificateRequest"}}
	o.GenerateName = "req-"
	o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: r.Pod.Name, UID: r.Pod.UID}}
	o.Spec = spec{
		SignerName: r.Source.SignerName, PodName: r.Pod.Name, PodUID: r.Pod.UID,
		ServiceAccountName: r.Account, ServiceAccountUID: r.AccountUID, NodeName: r.Node, NodeUID: r.NodeUID,
		MaxExpirationSeconds: defaultLife, UnverifiedUserAnnotations: r.Source.UserAnnotations,
	}
	if life := r.Source.MaxExpirationSeconds; life != nil {
		o.Spec.MaxExpirationSeconds = *life
	}
	if version == "v1" {
		o.Spec.StubPKCS10Request, err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, r.Key)
	} else if o.Spec.PKIXPublicKey, err = x509.MarshalPKIXPublicKey(r.Key.Public()); err == nil {
		o.Spec.ProofOfPossession, err = signProof(r.Key, []byte(r.Pod.UID))
	}
	if err != nil {
		return "", fmt.Errorf("sign the request for a certificate: %w", err)
	}
	var made object
	if err := a.callVersion(ctx, version, requests, call{verb: http.MethodPost, path: namespacePath(r.Pod.Namespace), body: o}, &made); err != nil {
		return "", err
	}
	if made.Name == "" {
		return "", errors.New("the API server's answer has no name")
	}
	return made.Name, nil
}

// signProof signs the data for the API server's verification.
func signProof(key crypto.Signer, data []byte) ([]byte, error) {
	digest := sha256.Sum256(data)
	switch key.Public().(type) {
	case ed25519.PublicKey:
		return key.Sign(rand.Reader, data, crypto.Hash(0))
	case *rsa.PublicKey:
		return key.Sign(rand.Reader, digest[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthAuto, Hash: crypto.SHA256})
	default:
		return key.Sign(rand.Reader, digest[:], crypto.SHA256)
	}
}

// Answer returns the state of a request for a pod of the node. It uses a list instead of a get, because a node may always list requests for its own
// pods, while the Node authorizer may not know a new request yet.
func (a *API) Answer(ctx context.Context, namespace, node, name string) (Answer, error) {
	var list struct {
		Items []object `json:"items"`
	}
	selector := fields.AndSelectors(fields.OneTermEqualSelector(metav1.ObjectNameField, name), fields.OneTermEqualSelector("spec.nodeName", node))
	err := a.callServed(ctx, requests, call{verb: http.MethodGet, path: namespacePath(namespace), params: map[string]string{"fieldSelector": selector.String()}}, &list)
	if err != nil {
		return Answer{}, err
	}
	for i := range list.Items {
		if o := &list.Items[i]; o.Name == name {
			return answerOf(o), nil
		}
	}
	return Answer{}, nil
}

func answerOf(o *object) Answer {
	out := Answer{Found: true, Chain: o.Status.CertificateChain, BeginRefreshAt: o.Status.BeginRefreshAt}
	for _, c := range o.Status.Conditions {
		if (c.Type == Issued || c.Type == Denied || c.Type == Failed) && c.Status == metav1.ConditionTrue {
			out.Condition, out.Reason, out.Message = c.Type, c.Reason, c.Message
		}
	}
	return out
}

// namespacePath is the path of a namespace.
func namespacePath(namespace string) []string { return []string{"namespaces", namespace} }
