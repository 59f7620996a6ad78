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

// RenewClient is the fix for an expiring client certificate.
const RenewClient = "renew it: issue a new one, or let the node ask for it with a bootstrap kubeconfig"

// checkClientCertificate checks the client certificate of the kubeconfig.
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
		e.lifetime(pair.Leaf, "the client certificate", RenewClient)
	}
}

// checkServingCertificate checks the certificate files of the kubelet API.
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

// checkClientCA checks the client CA file for the callers of the kubelet API.
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

// lifetime checks whether a certificate is valid now and for a while.
func (e *exam) lifetime(c *x509.Certificate, what, fix string) {
	switch severity, problem := Lifetime(c, time.Now()); {
	case severity == Warning:
		e.warn(fix, "%s %s", what, problem)
	case severity == Error && time.Now().Before(c.NotBefore):
		e.found("set the clock of this machine, or wait", "%s %s", what, problem)
	case severity == Error:
		e.found(fix, "%s %s", what, problem)
	}
}

// Lifetime returns the problem with the lifetime of a certificate, or "".
func Lifetime(c *x509.Certificate, now time.Time) (severity Severity, problem string) {
	switch {
	case !now.Before(c.NotAfter):
		return Error, "expired at " + c.NotAfter.Format(time.RFC3339)
	case now.Before(c.NotBefore):
		return Error, "is not valid before " + c.NotBefore.Format(time.RFC3339)
	case !now.Before(LateRenewal(c)):
		return Warning, fmt.Sprintf("expires in %s, at %s", c.NotAfter.Sub(now).Round(time.Second), c.NotAfter.Format(time.RFC3339))
	}
	return "", ""
}

// LateRenewal returns the time when a renewal is late: programs renew certificates before the last tenth of their lifetime.
func LateRenewal(c *x509.Certificate) time.Time {
	return c.NotAfter.Add(-c.NotAfter.Sub(c.NotBefore) / 10).Add(time.Nanosecond)
}
