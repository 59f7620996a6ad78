// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// DefaultServerCiphers returns the TLS 1.2 cipher suites of a node's server:
// forward secret and authenticated (ECDHE with AES-GCM or ChaCha20-Poly1305)
// only, since every client of a kubelet speaks them. TLS 1.3 chooses its own. The
// slice is the caller's.
func DefaultServerCiphers() []uint16 {
	return []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
		tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}
}

// defaultTLSConfig asks for client certificates without insisting, so that callers with
// a token get through the handshake too.
func defaultTLSConfig() *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		CipherSuites: DefaultServerCiphers(),
		ClientAuth:   tls.RequestClientCert,
	}
}

// WithCAFromPath returns an option for WithTLSConfig that accepts only clients with a
// certificate of an authority in the PEM file at path p: WithCACert, and
// ClientAuth RequireAndVerifyClientCert. Callers that have only a token, such as
// metrics-server, then fail in the handshake; WithCACert alone accepts both.
func WithCAFromPath(p string) func(*tls.Config) error {
	return func(cfg *tls.Config) error {
		pem, err := os.ReadFile(p)
		if err != nil {
			return fmt.Errorf("read client CA: %w", err)
		}
		if err := WithCACert(pem)(cfg); err != nil {
			return fmt.Errorf("client CA file %s: %w", p, err)
		}
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
		return nil
	}
}

// WithCACert returns an option for WithTLSConfig that adds the authorities in
// pem to those whose client certificates are trusted. It leaves ClientAuth
// alone: with the default, certificates are verified by the authentication of
// the server and not in the handshake.
func WithCACert(pem []byte) func(*tls.Config) error {
	return func(cfg *tls.Config) error {
		pool := x509.NewCertPool()
		if cfg.ClientCAs != nil {
			pool = cfg.ClientCAs.Clone() // it may be shared with the configuration that ours was cloned from
		}
		if !pool.AppendCertsFromPEM(pem) {
			return errors.New("no CA certificate found in PEM data")
		}
		cfg.ClientCAs = pool
		return nil
	}
}

// WithKeyPairFromPath returns an option for WithTLSConfig that adds the serving
// certificate and key in the PEM files cert and key. They are read once; for
// certificates that are renewed, set tls.Config.GetCertificate.
func WithKeyPairFromPath(cert, key string) func(*tls.Config) error {
	return func(cfg *tls.Config) error {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("load serving certificate %q with key %q: %w", cert, key, err)
		}
		cfg.Certificates = append(cfg.Certificates, pair)
		return nil
	}
}
