// SPDX-License-Identifier: Apache-2.0

// Package testpki makes certificates for tests: authorities, and their certificates for servers on loopback and
// for clients.
package testpki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority is a certificate authority for one test.
type Authority struct {
	Cert *x509.Certificate
	Key  *ecdsa.PrivateKey
	PEM  []byte
}

// New returns a new authority.
func New(t testing.TB) *Authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test CA"},
		NotBefore:             time.Now().Add(-time.Minute),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &Authority{Cert: cert, Key: key, PEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Issue writes a certificate for name into a new folder, good for servers on loopback and for
// clients for an hour, and returns the paths of certificate and key.
func (a *Authority) Issue(t testing.TB, name string) (certPath, keyPath string) {
	t.Helper()
	return a.IssueInto(t, t.TempDir(), name)
}

// IssueInto is Issue for a folder with a possible older certificate: each of the two files is replaced at once,
// one after the other.
func (a *Authority) IssueInto(t testing.TB, dir, name string) (certPath, keyPath string) {
	t.Helper()
	return a.issueCertificate(t, dir, name, time.Now().Add(time.Hour))
}

// IssueExpired is Issue for an expired certificate.
func (a *Authority) IssueExpired(t testing.TB, name string) (certPath, keyPath string) {
	t.Helper()
	return a.issueCertificate(t, t.TempDir(), name, time.Now().Add(-time.Minute))
}

// issueCertificate makes a certificate for the two hours before end.
func (a *Authority) issueCertificate(t testing.TB, dir, name string, end time.Time) (certPath, keyPath string) {
	t.Helper()
	key := newKey(t)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    end.Add(-2 * time.Hour),
		NotAfter:     end,
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Cert, &key.PublicKey, a.Key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPath, keyPath = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	writePEM(t, certPath, "CERTIFICATE", der)
	writePEM(t, keyPath, "EC PRIVATE KEY", keyDER)
	return certPath, keyPath
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	err := os.WriteFile(path+".new", pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ClientConfig trusts a's servers, and presents a certificate of by for name unless by is nil.
func (a *Authority) ClientConfig(t testing.TB, by *Authority, name string) *tls.Config {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(a.Cert)
	cfg := &tls.Config{RootCAs: pool}
	if by != nil {
		presentCertificate(t, cfg)(by.Issue(t, name))
	}
	return cfg
}

// ExpiredConfig is ClientConfig with an expired certificate of a for name.
func (a *Authority) ExpiredConfig(t testing.TB, name string) *tls.Config {
	t.Helper()
	cfg := a.ClientConfig(t, nil, "")
	presentCertificate(t, cfg)(a.IssueExpired(t, name))
	return cfg
}

// presentCertificate makes cfg send the certificate in the files, even if the server does not ask for this
// authority: tests must try a wrong certificate, too.
func presentCertificate(t testing.TB, cfg *tls.Config) func(certPath, keyPath string) {
	return func(certPath, keyPath string) {
		t.Helper()
		pair, err := tls.LoadX509KeyPair(certPath, keyPath)
		if err != nil {
			t.Fatal(err)
		}
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
}
