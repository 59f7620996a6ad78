// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/certrequest"
)

// servingPrefix is the prefix of the certificate files in the directory, the same as a kubelet's.
const servingPrefix = "kubelet-server"

// WithServingCertificateRequests makes the node request the serving certificate of its server from the API server: by
// CertificateSigningRequests to kubernetes.io/kubelet-serving, for system:node:NAME and the addresses in its status. It requests again when
// 70 to 90 % of the certificate's life have passed or the node has a new address. It keeps the certificate and the key in dir. If dir is
// "", it keeps them in memory, and each start makes a new request.
//
// The requests must be approved; a cluster does not do this by default. Until then TLS handshakes fail, and the node has the condition
// ServingCertificatePending. The option cannot be combined with a serving certificate in TLSConfig, and not used for a Fleet.
func WithServingCertificateRequests(dir string) NodeOpt {
	return func(cfg *NodeConfig) error {
		cfg.servingRequests = &servingRequests{dir: dir}
		if cfg.TLSConfig == nil {
			cfg.TLSConfig = defaultTLSConfig()
		}
		return nil
	}
}

// servingCertificate is a serving certificate that the node requests from the cluster.
type servingCertificate struct {
	*certrequest.Manager
	notices   *certNotices
	addresses atomic.Pointer[[]corev1.NodeAddress]
}

// newServingCertificate returns the serving certificate for cfg, or nil, and makes cfg serve with it.
func newServingCertificate(cfg *NodeConfig, client kubernetes.Interface, name string) (*servingCertificate, error) {
	if cfg.servingRequests == nil || cfg.Handler == nil {
		return nil, nil
	}
	if cfg.TLSConfig == nil || hasCertificate(cfg.TLSConfig) {
		return nil, errors.New("WithServingCertificateRequests: TLSConfig is gone or has a serving certificate, too; choose one way")
	}
	store := certrequest.InMemory()
	if dir := cfg.servingRequests.dir; dir != "" {
		var err error
		if store, err = certrequest.InFiles(dir, servingPrefix); err != nil {
			return nil, err
		}
	}
	s := &servingCertificate{notices: &certNotices{
		what: "serving", kind: ServingCertificatePending,
		without: "the kubelet API answers nobody: kubectl logs and exec do not work",
	}}
	var err error
	s.Manager, err = certrequest.New(certrequest.Config{
		Signer: certificatesv1.KubeletServingSignerName, Usages: certrequest.ServingUsages,
		Template: func() *x509.CertificateRequest { return certrequest.ServingTemplate(name, *s.addresses.Load()) },
		Client:   func(bool) (kubernetes.Interface, error) { return client, nil },
		Store:    store, Tell: s.notices.tell, Metrics: certrequest.Serving,
		Renew: cfg.renewCertificate,
	})
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	s.addresses.Store(new([]corev1.NodeAddress))
	cfg.TLSConfig = cfg.TLSConfig.Clone()
	cfg.TLSConfig.GetCertificate = s.get
	return s, nil
}

func (s *servingCertificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if current := s.Current(); current != nil {
		return current, nil
	}
	return nil, errors.New("no serving certificate was granted to this node yet")
}

// observe requests the certificate for the addresses of n.
func (s *servingCertificate) observe(n *corev1.Node) {
	addresses := append([]corev1.NodeAddress(nil), n.Status.Addresses...)
	s.addresses.Store(&addresses)
	s.Changed()
}

func hasCertificate(cfg *tls.Config) bool {
	return len(cfg.Certificates) > 0 || cfg.GetCertificate != nil || cfg.GetConfigForClient != nil
}
