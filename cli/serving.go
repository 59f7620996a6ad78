// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"

	"k8s.io/client-go/util/cert"

	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// serving returns the options for serving the kubelet API. Without these options, NewNode adds authentication and authorization by the API
// server.
func (o *options) serving() ([]nodeutil.NodeOpt, error) {
	if o.DisableKubeletAPI {
		return nil, nil
	}
	var tlsOpts []func(*tls.Config) error
	if !o.ServerTLSBootstrap {
		pair, err := o.keyPair()
		if err != nil {
			return nil, err
		}
		tlsOpts = append(tlsOpts, pair)
	}
	if o.tlsMinVersion != 0 {
		tlsOpts = append(tlsOpts, nodeutil.WithMinTLSVersion(o.tlsMinVersion))
	}
	if len(o.tlsCipherSuites) > 0 {
		tlsOpts = append(tlsOpts, nodeutil.WithCipherSuites(o.tlsCipherSuites...))
	}
	handler := &routes{}
	opts := []nodeutil.NodeOpt{
		nodeutil.WithTLSConfig(tlsOpts...),
		nodeutil.AttachProviderRoutes(handler),
		func(cfg *nodeutil.NodeConfig) error {
			cfg.Handler, cfg.Flags, cfg.EnableProfiling, cfg.SetVerbosity = handler, o.shown, o.EnableProfiling, o.setVerbosity
			return nil
		},
	}
	if o.ServerTLSBootstrap {
		opts = append(opts, nodeutil.WithServingCertificateRequests(o.CertDir))
	}
	if o.ClientCAFile != "" {
		opts = append(opts, nodeutil.WithClientCAFile(o.ClientCAFile))
	}
	if o.NoAuthentication {
		opts = append(opts, nodeutil.WithInsecureUnauthenticatedServer())
	}
	if o.ReviewPods {
		opts = append(opts, nodeutil.WithPodReviews())
	}
	return opts, nil
}

// maxCertNames bounds the nodes that a certificate names: each handshake carries it.
const maxCertNames = 100

// keyPair returns the option that sets the serving certificate.
func (o *options) keyPair() (func(*tls.Config) error, error) {
	if !o.SelfSigned {
		return nodeutil.WithKeyPairFiles(o.TLSCertFile, o.TLSPrivateKeyFile), nil
	}
	var ips []net.IP
	if ip := net.ParseIP(o.NodeIP); ip != nil {
		ips = append(ips, ip)
	}
	names := o.nodeNames
	if len(names) == 0 || len(names) > maxCertNames {
		names = []string{o.NodeName}
	}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(names[0], ips, names[1:])
	if err != nil {
		return nil, fmt.Errorf("make self-signed certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("make self-signed certificate: %w", err)
	}
	return func(cfg *tls.Config) error {
		cfg.Certificates = append(cfg.Certificates, pair)
		return nil
	}, nil
}

// routes is the handler of the kubelet API. Unlike http.ServeMux, it never redirects.
type routes struct {
	provider http.Handler
}

// Handle stores the handler with the provider's routes, which NewNode mounts once.
func (r *routes) Handle(_ string, h http.Handler) { r.provider = h }

// ServeHTTP passes the request to the handler of the provider.
func (r *routes) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.provider.ServeHTTP(w, req)
}
