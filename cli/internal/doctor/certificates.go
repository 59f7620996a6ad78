// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

// checkClientCertificate looks at the certificate that the kubeconfig shows to the API server.
func checkClientCertificate(_ context.Context, e *exam) {
	if e.rest == nil {
		e.skip("there is no kubeconfig")
		return
	}
	config := rest.CopyConfig(e.rest)
	if err := rest.LoadTLSFiles(config); err != nil {
		e.found("put the files where the kubeconfig says, readable for the user of this process", "a certificate file of the kubeconfig cannot be read: %v", err)
		return
	}
	if len(config.CertData) == 0 {
		e.skip("the kubeconfig has no client certificate")
		return
	}
	pair := e.pair(config.CertData, config.KeyData, "the client certificate")
	switch {
	case pair == nil:
	case e.BootstrapKubeconfig != "" && !e.bootstrap && time.Now().After(pair.Leaf.NotAfter):
		e.skip("the client certificate has expired; the node asks for a new one with --bootstrap-kubeconfig")
		e.rest, e.bootstrap = nil, true
		e.loadBootstrap()
	default:
		e.lifetime(pair.Leaf, "the client certificate", "renew it: issue a new one, or let the node ask for it with a bootstrap kubeconfig")
	}
}

// checkServingCertificate looks at the files that the kubelet API is served with.
func checkServingCertificate(_ context.Context, e *exam) {
	if !e.Serve || e.CertFile == "" || e.KeyFile == "" {
		e.skip("the kubelet API is not served with a certificate from files")
		return
	}
	certPEM, keyPEM := e.read(e.CertFile, "--tls-cert-file"), e.read(e.KeyFile, "--tls-private-key-file")
	if certPEM == nil || keyPEM == nil {
		return
	}
	pair := e.pair(certPEM, keyPEM, "the serving certificate")
	if pair == nil {
		return
	}
	e.lifetime(pair.Leaf, "the serving certificate", "renew "+e.CertFile)
	if e.NodeIP == "" {
		return
	}
	if err := pair.Leaf.VerifyHostname(e.NodeIP); err != nil {
		e.found(fmt.Sprintf("issue it with the IP address %s (subject alternative name)", e.NodeIP),
			"the serving certificate is not for the address of the node, so an API server that checks it refuses kubectl logs and exec: %v", err)
	}
}

// checkClientCA looks at the authorities of the callers of the kubelet API.
func checkClientCA(_ context.Context, e *exam) {
	if !e.Serve || e.ClientCAFile == "" {
		e.skip("--client-ca-file is not set")
		return
	}
	pem := e.read(e.ClientCAFile, "--client-ca-file")
	if pem == nil {
		return
	}
	authorities, err := cert.ParseCertsPEM(pem)
	if err != nil {
		e.found("name a PEM file with the authority that signs the API server's client certificate", "--client-ca-file %s: %v", e.ClientCAFile, err)
		return
	}
	for _, authority := range authorities {
		e.lifetime(authority, fmt.Sprintf("the authority %q in --client-ca-file", authority.Subject.CommonName), "put the current authority into "+e.ClientCAFile)
	}
}

// read returns the contents of a file, or nil and a finding.
func (e *exam) read(path, flag string) []byte {
	data, err := os.ReadFile(path)
	if err != nil {
		e.found("put the file there, readable for the user of this process, or correct "+flag, "%s: %v", flag, err)
		return nil
	}
	return data
}

// pair returns a certificate with its key, or nil and a finding.
func (e *exam) pair(certPEM, keyPEM []byte, what string) *tls.Certificate {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		e.found("use the key that the certificate was issued for, both as PEM", "%s and its key cannot be used together: %v", what, err)
		return nil
	}
	return &pair
}

// lifetime looks whether a certificate is valid now and for a while.
func (e *exam) lifetime(c *x509.Certificate, what, fix string) {
	now := time.Now()
	left := c.NotAfter.Sub(now)
	switch life := c.NotAfter.Sub(c.NotBefore); {
	case left <= 0:
		e.found(fix, "%s expired at %s", what, c.NotAfter.Format(time.RFC3339))
	case now.Before(c.NotBefore):
		e.found("set the clock of this machine, or wait", "%s is not valid before %s", what, c.NotBefore.Format(time.RFC3339))
	case left < life/10: // what renews certificates does so before that
		e.warn(fix, "%s expires in %s, at %s", what, left.Round(time.Second), c.NotAfter.Format(time.RFC3339))
	}
}
