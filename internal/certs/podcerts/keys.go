// SPDX-License-Identifier: Apache-2.0

package podcerts

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

const (
	keyBlock         = "PRIVATE KEY"
	certificateBlock = "CERTIFICATE"
)

var curves = map[string]elliptic.Curve{"ECDSAP256": elliptic.P256(), "ECDSAP384": elliptic.P384(), "ECDSAP521": elliptic.P521()}

var moduli = map[string]int{"RSA3072": 3072, "RSA4096": 4096} // in bits

const ed25519Type = "ED25519"

// newKey generates a key of a type in the API. The error for an unknown type is of the kind invalid-input.
func newKey(kind string) (crypto.Signer, error) {
	if bits := moduli[kind]; bits != 0 {
		return rsa.GenerateKey(rand.Reader, bits)
	}
	if curve := curves[kind]; curve != nil {
		return ecdsa.GenerateKey(curve, rand.Reader)
	}
	if kind == ed25519Type {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return nil, errdefs.InvalidInputf("unknown key type %q", kind)
}

// isOf reports whether a public key is of a type in the API.
func isOf(key crypto.PublicKey, kind string) bool {
	switch key := key.(type) {
	case *rsa.PublicKey:
		return key.N.BitLen() == moduli[kind]
	case *ecdsa.PublicKey:
		return key.Curve == curves[kind]
	case ed25519.PublicKey:
		return kind == ed25519Type
	}
	return false
}

// encodeKey returns a key in the format of volumes.
func encodeKey(key crypto.Signer) ([]byte, error) {
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode the key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: raw}), nil
}

// parseCertificates returns the certificate chain in a text, and its first certificate, which must match the key.
func parseCertificates(text []byte, key crypto.Signer) (chain []byte, leaf *x509.Certificate, err error) {
	var out bytes.Buffer
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != certificateBlock {
			continue
		}
		if leaf == nil {
			if leaf, err = x509.ParseCertificate(block.Bytes); err != nil {
				return nil, nil, fmt.Errorf("read the certificate: %w", err)
			}
		}
		out.Write(pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: block.Bytes}))
	}
	if leaf == nil {
		return nil, nil, errors.New("there is no certificate")
	}
	if public, ok := leaf.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(key.Public()) {
		return nil, nil, errors.New("the certificate is for another key")
	}
	return out.Bytes(), leaf, nil
}

// adoptCredential reads a key and its certificate from a volume. It returns nil if the key has another type, if the two do not match, or if the
// certificate is not valid now.
func adoptCredential(had []byte, kind string, now time.Time) *credential {
	block, rest := pem.Decode(had)
	if block == nil || block.Type != keyBlock {
		return nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(crypto.Signer)
	if err != nil || !ok || !isOf(key.Public(), kind) {
		return nil
	}
	chain, leaf, err := parseCertificates(rest, key)
	if err != nil || now.Before(leaf.NotBefore) || !now.Before(leaf.NotAfter) {
		return nil
	}
	return &credential{key: pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: block.Bytes}), chain: chain, ends: leaf.NotAfter, refresh: refreshOf(leaf)}
}

// refreshOf returns the time to replace a certificate if the signer reports none.
func refreshOf(leaf *x509.Certificate) time.Time {
	return leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) * 2 / 3)
}
