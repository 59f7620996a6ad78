// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/certapi"
	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/podcerts"
	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/trustbundles"
	"github.com/virtual-kubelet/virtual-kubelet/internal/providercall"
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

// podCertificates is what a PodCertificatesUser is given.
type podCertificates struct {
	c       *PodController
	manager *podcerts.Manager // nil: the client asks for none
}

// errNoCertificates is the answer of a node whose client asks for pods only.
var errNoCertificates = errors.New("this node has no client that asks for certificates.k8s.io")

// useCertificates decides where trust bundles and certificates come from: the client has them if it is that of a whole API server.
func (c *PodController) useCertificates(cfg *PodControllerConfig) {
	c.bundles, c.certificates = podTrustBundles{c: c}, podCertificates{c: c}
	client, ok := cfg.PodClient.(corev1client.CoreV1Interface)
	if !ok {
		return
	}
	asks := client.RESTClient()
	if shared, ok := asks.(*rest.RESTClient); ok && shared == nil { // of a client of tests
		return
	}
	api := certapi.New(asks)
	c.bundles.reader = trustbundles.New(api)
	c.certificates.manager = podcerts.New(podcerts.Config{
		Requests: api,
		Account: func(ctx context.Context, namespace, name string) (types.UID, error) {
			if c.store != nil {
				c.store.Await(ctx, authorizationv1.ResourceAttributes{Verb: "get", Resource: "serviceaccounts", Namespace: namespace, Name: name})
			}
			account, err := client.ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			return account.UID, nil
		},
		Node: func(ctx context.Context) (string, types.UID, error) {
			node, err := client.Nodes().Get(ctx, c.nodeName, metav1.GetOptions{})
			if err != nil {
				return "", "", err
			}
			return node.Name, node.UID, nil
		},
		Recorder: cfg.EventRecorder,
		Remember: func(pod types.UID, purpose, name string, key []byte) {
			c.secrets.Values(pod).Remember("certificate/"+purpose, name, key)
		},
	})
}

// Certificate gives a certificate to a pod of this node, unless it has ended meanwhile.
func (p podCertificates) Certificate(ctx context.Context, pod *corev1.Pod, source *corev1.PodCertificateProjection, had []byte) (PodCertificate, error) {
	if p.manager == nil {
		return PodCertificate{}, errNoCertificates
	}
	api, err := p.c.secrets.Pod(pod)
	if err != nil {
		return PodCertificate{}, err
	}
	got, err := p.manager.Get(ctx, api, source, had)
	if err != nil {
		return PodCertificate{}, err
	}
	if _, err := p.c.secrets.Pod(pod); err != nil {
		p.manager.Forget(pod.UID)
		return PodCertificate{}, err
	}
	return PodCertificate{Key: got.Key, Chain: got.Chain, ExpiresAt: got.ExpiresAt}, nil
}

// offerCertificates tells a provider that wants to know where it gets certificates.
func (c *PodController) offerCertificates(ctx context.Context) error {
	user, ok := c.provider.(PodCertificatesUser)
	if !ok {
		return nil
	}
	return (&providercall.Caller{}).Do(ctx, "UsePodCertificates", func(context.Context) error {
		user.UsePodCertificates(c.certificates)
		return nil
	})
}
