// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// Validity of certificates. Clocks of machines may be wrong, so each certificate is valid from clockError before its creation.
const (
	authorityLife = 20 * 365 * 24 * time.Hour
	nodeLife      = 24 * time.Hour
	machineLife   = 30 * 24 * time.Hour
	clockError    = 24 * time.Hour
)

// Authority is the certificate authority of a node. Its key is the only key that the node saves. The secrets of all machines derive from it.
type Authority struct {
	key    *ecdsa.PrivateKey
	cert   *x509.Certificate
	secret []byte

	mu   sync.Mutex
	node *tls.Certificate // guarded by mu: the client certificate of the node
}

// NewAuthority makes an authority with a new key.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the authority: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: newSerial(), Subject: pkix.Name{CommonName: "virtual-kubelet cells"},
		NotBefore: time.Now().Add(-clockError), NotAfter: time.Now().Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the authority: %w", err)
	}
	return newAuthority(key, der)
}

func newAuthority(key *ecdsa.PrivateKey, der []byte) (*Authority, error) {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the authority: %w", err)
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, errdefs.InvalidInput("the key of the authority is not that of its certificate")
	}
	private, err := key.Bytes()
	if err != nil {
		return nil, fmt.Errorf("read the key of the authority: %w", err)
	}
	return &Authority{key: key, cert: cert, secret: hashParts(private, "secrets of machines")}, nil
}

// Types of PEM blocks.
const (
	pemCertificate = "CERTIFICATE"
	pemKey         = "PRIVATE KEY"
)

// PEM returns the certificate and the key of the authority.
func (a *Authority) PEM() ([]byte, error) {
	key, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, fmt.Errorf("write the key of the authority: %w", err)
	}
	return append(a.certificate(), pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: key})...), nil
}

// certificate returns the certificate of the authority in PEM.
func (a *Authority) certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: a.cert.Raw})
}

// ParseAuthority reads the output of PEM.
func ParseAuthority(data []byte) (*Authority, error) {
	var der []byte
	var key *ecdsa.PrivateKey
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case pemCertificate:
			der = block.Bytes
		case pemKey:
			parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				return nil, errdefs.AsInvalidInput(fmt.Errorf("read the key of the authority: %w", err))
			}
			key, _ = parsed.(*ecdsa.PrivateKey)
		}
	}
	if der == nil || key == nil {
		return nil, errdefs.InvalidInput("read the authority: want a certificate and a private key for ECDSA in PEM")
	}
	return newAuthority(key, der)
}

// UserData returns the user data of the machine with a token.
func (a *Authority) UserData(token string, pod types.UID, orphanAfter, abandonedAfter time.Duration) UserData {
	return UserData{
		Authority: string(a.certificate()), Token: token, Secret: a.secretOf(token), Pod: pod,
		OrphanAfter: int64(orphanAfter / time.Second), AbandonedAfter: int64(abandonedAfter / time.Second),
	}
}

func (a *Authority) secretOf(token string) []byte { return hashParts(a.secret, "machine", token) }

// hashParts returns the HMAC of parts. The length of each part keeps the parts distinct.
func hashParts(key []byte, parts ...string) []byte {
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return h.Sum(nil)
}

// proveSecret returns evidence that the owner of a machine's secret also has a public key.
func proveSecret(secret, nonce, publicKey []byte) []byte {
	return hashParts(secret, "join", string(nonce), string(publicKey))
}

func newSerial() *big.Int {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	b[0] &= 0x7f
	return new(big.Int).SetBytes(b)
}

// nodeCertificate returns the node's certificate for connections to machines.
func (a *Authority) nodeCertificate() (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.node != nil && time.Until(a.node.Leaf.NotAfter) > nodeLife/2 {
		return a.node, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the node: %w", err)
	}
	leaf, err := a.signKey(&key.PublicKey, "node", x509.ExtKeyUsageClientAuth, nodeLife+clockError)
	if err != nil {
		return nil, err
	}
	a.node = &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
	return a.node, nil
}

func (a *Authority) signKey(key any, name string, usage x509.ExtKeyUsage, life time.Duration) (*x509.Certificate, error) {
	now := time.Now()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: newSerial(), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: now.Add(-clockError), NotAfter: now.Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}, a.cert, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %s: %w", name, err)
	}
	return x509.ParseCertificate(der)
}

// signRequest signs a machine's request for a certificate. The machine has proved that it owns key.
func (a *Authority) signRequest(token string, der []byte, key []byte) (*x509.Certificate, error) {
	req, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, fmt.Errorf("read the machine's request for a certificate: %w", err)
	}
	if err := req.CheckSignature(); err != nil {
		return nil, fmt.Errorf("check the machine's request for a certificate: %w", err)
	}
	if string(req.RawSubjectPublicKeyInfo) != string(key) {
		return nil, errors.New("the machine asks for a certificate of another key than it has")
	}
	return a.signKey(req.PublicKey, machineName(token), x509.ExtKeyUsageServerAuth, machineLife)
}

// machineName returns the name in a machine's certificate. It is a hash, because a token may have characters that a name cannot have.
func machineName(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:16]) + ".cell.internal"
}

// fingerprint returns the SHA-256 hash of a public key in hex.
func fingerprint(publicKey []byte) string {
	sum := sha256.Sum256(publicKey)
	return hex.EncodeToString(sum[:])
}
