// SPDX-License-Identifier: Apache-2.0

// Package pki makes the certificates, keys and kubeconfigs of one development cluster.
//
// The guarantee: everything is in one directory that only its owner can read, every certificate has exactly the usages and organisations
// that its holder needs, and an incomplete directory is never used. Note: a restarted cluster keeps its certificates but may get
// another port, so kubeconfigs are written again at every start.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	authorityLife = 10 // years
	leafLife      = 5  // years
)

// Authority is a certificate authority that can issue leaf certificates.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pair Pair
}

// Pair is a certificate and its private key, both PEM encoded.
type Pair struct {
	Cert []byte
	Key  []byte
}

// Request describes a leaf certificate.
type Request struct {
	// CommonName is the user name of a client certificate, as the API server sees it.
	CommonName string
	// Organizations are the groups of a client certificate, as the API server sees them.
	Organizations []string
	// Usages are the extended key usages; a certificate without usages is refused.
	Usages []x509.ExtKeyUsage
	// DNSNames and IPs are the names and addresses of a server certificate.
	DNSNames []string
	IPs      []net.IP
}

// NewAuthority makes a self-signed authority with the given common name, valid for ten years.
func NewAuthority(name string) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.AddDate(authorityLife, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate authority %s: %w", name, err)
	}
	pair, err := encodePair(der, key)
	if err != nil {
		return nil, err
	}
	return ParseAuthority(pair)
}

// ParseAuthority makes an authority of its PEM encoded certificate and key.
func ParseAuthority(pair Pair) (*Authority, error) {
	parsed, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, fmt.Errorf("parse certificate authority: %w", err)
	}
	signer, ok := parsed.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("parse certificate authority: a %T cannot sign", parsed.PrivateKey)
	}
	return &Authority{cert: parsed.Leaf, key: signer, pair: pair}, nil
}

// Pair returns the authority's own certificate and key.
func (a *Authority) Pair() Pair { return a.pair }

// Issue makes a leaf certificate with a fresh key, valid for five years.
func (a *Authority) Issue(r Request) (Pair, error) {
	if len(r.Usages) == 0 {
		return Pair{}, fmt.Errorf("issue certificate %s: no usage was requested", r.CommonName)
	}
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	serial, err := newSerial()
	if err != nil {
		return Pair{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: r.CommonName, Organization: r.Organizations},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(leafLife, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  r.Usages,
		DNSNames:     r.DNSNames,
		IPAddresses:  r.IPs,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign certificate %s: %w", r.CommonName, err)
	}
	return encodePair(der, key)
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	return key, nil
}

func newSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("generate serial number: %w", err)
	}
	return serial, nil
}
