// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
)

// DefaultServerCiphers returns the TLS 1.2 cipher suites of a node's server: only forward secret and
// authenticated suites (ECDHE with AES-GCM or ChaCha20-Poly1305), because every client of a kubelet supports
// them. TLS 1.3 chooses its own suites. The caller owns the slice.
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

// defaultTLSConfig requests client certificates without requiring them, so that callers with a token pass the
// handshake too.
func defaultTLSConfig() *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		CipherSuites: DefaultServerCiphers(),
		ClientAuth:   tls.RequestClientCert,
	}
}

// WithCAFromPath returns an option for WithTLSConfig that accepts only clients with a certificate of an
// authority in the PEM file at path p: WithCACert, and ClientAuth RequireAndVerifyClientCert. Callers that have
// only a token, such as metrics-server, then fail in the handshake; WithCACert alone accepts both.
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

// WithCACert returns an option for WithTLSConfig that adds the authorities in pem to the trusted authorities for
// client certificates. It does not change ClientAuth: with the default, the authentication of the server
// verifies certificates, not the handshake.
func WithCACert(pem []byte) func(*tls.Config) error {
	return func(cfg *tls.Config) error {
		pool := x509.NewCertPool()
		if cfg.ClientCAs != nil {
			pool = cfg.ClientCAs.Clone() // cfg may be a clone that shares its pool with the original
		}
		if !pool.AppendCertsFromPEM(pem) {
			return errors.New("no CA certificate found in PEM data")
		}
		cfg.ClientCAs = pool
		return nil
	}
}

// WithKeyPairFromPath returns an option for WithTLSConfig that adds the serving certificate and key in the PEM
// files cert and key. The files are read once; for renewed certificates, use WithKeyPairFiles.
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

// WithMinTLSVersion returns an option for WithTLSConfig that refuses clients without support for version, such
// as tls.VersionTLS13, or newer. Versions before 1.2 are an error.
func WithMinTLSVersion(version uint16) func(*tls.Config) error {
	return func(cfg *tls.Config) error {
		if version < tls.VersionTLS12 {
			return fmt.Errorf("%s is broken; use %s or %s", tls.VersionName(version), tls.VersionName(tls.VersionTLS12), tls.VersionName(tls.VersionTLS13))
		}
		if version > tls.VersionTLS13 {
			return fmt.Errorf("there is no %s", tls.VersionName(version))
		}
		cfg.MinVersion = version
		return nil
	}
}

// WithCipherSuites returns an option for WithTLSConfig that leaves only the given suites of DefaultServerCiphers
// for TLS 1.2. Other suites are an error, except the suites of TLS 1.3, which cannot be chosen.
func WithCipherSuites(ids ...uint16) func(*tls.Config) error {
	return func(cfg *tls.Config) error {
		kept := safeSuites(ids)
		for _, id := range ids {
			if !slices.Contains(kept, id) && !slices.Contains(tls13Suites, id) {
				return fmt.Errorf("cipher suite %s has no forward secrecy or no authenticated encryption; leave it out", tls.CipherSuiteName(id))
			}
		}
		cfg.CipherSuites = kept
		return nil
	}
}

var tls13Suites = []uint16{tls.TLS_AES_128_GCM_SHA256, tls.TLS_AES_256_GCM_SHA384, tls.TLS_CHACHA20_POLY1305_SHA256}

// safeSuites returns the ids that a node's server may use in TLS 1.2.
func safeSuites(ids []uint16) []uint16 {
	kept := []uint16{}
	for _, id := range ids {
		if slices.Contains(DefaultServerCiphers(), id) {
			kept = append(kept, id)
		}
	}
	return kept
}

// hardened returns the TLS configuration of the listener. Regardless of the program's settings, it allows
// nothing older than TLS 1.2 and only the suites of DefaultServerCiphers. It leaves HTTP/2 out: SPDY upgrades
// need HTTP/1.1, and this also avoids the known ways of HTTP/2 to exhaust a server.
func hardened(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	cfg.NextProtos = []string{"http/1.1"}
	cfg.MinVersion = max(cfg.MinVersion, tls.VersionTLS12)
	if cfg.CipherSuites == nil {
		cfg.CipherSuites = DefaultServerCiphers()
	}
	cfg.CipherSuites = safeSuites(cfg.CipherSuites)
	if choose := cfg.GetConfigForClient; choose != nil {
		cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := choose(hello)
			if chosen == nil || err != nil {
				return nil, err
			}
			return hardened(chosen), nil
		}
	}
	return cfg
}
