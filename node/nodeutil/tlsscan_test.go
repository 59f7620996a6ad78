// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
)

// TestSecurityB6ScanOfVersionsAndSuites tries every TLS version and every cipher suite, with both kinds of
// certificates, as external scanners do.
func TestSecurityB6ScanOfVersionsAndSuites(t *testing.T) {
	all := append(tls.CipherSuites(), tls.InsecureCipherSuites()...)
	ids := []uint16{}
	for _, suite := range all {
		ids = append(ids, suite.ID)
	}
	// One program allows every version and suite, and one has no settings.
	lax := func(cfg *tls.Config) error {
		cfg.MinVersion, cfg.CipherSuites = tls.VersionTLS10, ids
		return nil
	}
	silent := func(cfg *tls.Config) error {
		cfg.MinVersion, cfg.CipherSuites = 0, nil
		return nil
	}
	lazy := func(cfg *tls.Config) error {
		inner := &tls.Config{MinVersion: tls.VersionTLS10, CipherSuites: ids, Certificates: cfg.Certificates}
		cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return inner, nil }
		return nil
	}
	both := []uint16{tls.VersionTLS12, tls.VersionTLS13}
	one := []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256}
	for name, tc := range map[string]struct {
		opt      func(*tls.Config) error
		versions []uint16
		suites   []uint16 // suites of TLS 1.2
	}{
		"default":   {func(*tls.Config) error { return nil }, both, DefaultServerCiphers()},
		"lax":       {lax, both, DefaultServerCiphers()},
		"silent":    {silent, both, DefaultServerCiphers()},
		"by client": {lazy, both, DefaultServerCiphers()},
		"1.3":       {WithMinTLSVersion(tls.VersionTLS13), []uint16{tls.VersionTLS13}, nil},
		"one suite": {WithCipherSuites(one...), both, one},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for kind, pair := range pairs(t) {
				cfg := &NodeConfig{Handler: WithAuth(NoAuth(), hello)}
				own := func(c *tls.Config) error { c.Certificates = []tls.Certificate{pair}; return nil }
				if err := WithTLSConfig(own, tc.opt)(cfg); err != nil {
					t.Fatal(err)
				}
				s := serve(t, cfg, newReviews(t), &lineLogger{})
				addr := strings.TrimPrefix(s.url, "https://")
				for v := uint16(tls.VersionTLS10); v <= tls.VersionTLS13; v++ {
					got, _ := handshake(addr, v, v, ids...)
					if want := slices.Contains(tc.versions, v); (got == v) != want {
						t.Errorf("%s certificate, %s: accepted %t, want %t", kind, tls.VersionName(v), got == v, want)
					}
				}
				if got, _ := handshake(addr, tls.VersionTLS10, tls.VersionTLS13, ids...); got != tls.VersionTLS13 {
					t.Errorf("%s certificate: of all versions the server chose %s, want TLS 1.3", kind, tls.VersionName(got))
				}
				for _, suite := range all {
					if slices.Contains(tls13Suites, suite.ID) {
						continue
					}
					got, id := handshake(addr, tls.VersionTLS10, tls.VersionTLS12, suite.ID)
					want := slices.Contains(tc.suites, suite.ID) && strings.Contains(suite.Name, kind)
					if ok := got == tls.VersionTLS12 && id == suite.ID; ok != want {
						t.Errorf("%s certificate, %s: accepted %t (%s), want %t", kind, suite.Name, ok, tls.VersionName(got), want)
					}
				}
			}
		})
	}
}

// handshake returns the negotiated version and suite, or zeros if the handshake fails.
func handshake(addr string, from, to uint16, suites ...uint16) (version, suite uint16) {
	cfg := &tls.Config{InsecureSkipVerify: true, MinVersion: from, MaxVersion: to, CipherSuites: suites}
	conn, err := tls.Dial("tcp", addr, cfg)
	if err != nil {
		return 0, 0
	}
	defer conn.Close()
	return conn.ConnectionState().Version, conn.ConnectionState().CipherSuite
}

// pairs returns certificates by kind of key. The kinds are named as in the names of cipher suites.
func pairs(t *testing.T) map[string]tls.Certificate {
	t.Helper()
	ec, err := tls.LoadX509KeyPair(testpki.New(t).Issue(t, "n1"))
	if err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("n1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	rsa, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]tls.Certificate{"_ECDSA_": ec, "_RSA_": rsa}
}

func TestWeakTLSIsRefused(t *testing.T) {
	for want, opt := range map[string]func(*tls.Config) error{
		"TLS 1.1 is broken":  WithMinTLSVersion(tls.VersionTLS11),
		"there is no 0x0305": WithMinTLSVersion(0x0305),
		"cipher suite TLS_RSA_WITH_AES_128_CBC_SHA has no forward secrecy": WithCipherSuites(tls.TLS_RSA_WITH_AES_128_CBC_SHA),
	} {
		if err := WithTLSConfig(opt)(&NodeConfig{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := WithTLSConfig(WithCipherSuites(tls.TLS_AES_128_GCM_SHA256))(&NodeConfig{}); err != nil {
		t.Errorf("a suite of TLS 1.3: %v", err)
	}
}
