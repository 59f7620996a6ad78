// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
)

func TestDefaultServerCiphersAreSafe(t *testing.T) {
	got := DefaultServerCiphers()
	if len(got) == 0 {
		t.Fatal("no cipher suites")
	}
	for _, id := range got {
		i := slices.IndexFunc(tls.CipherSuites(), func(s *tls.CipherSuite) bool { return s.ID == id })
		if i < 0 {
			t.Errorf("suite %#x is insecure or unknown", id)
			continue
		}
		if name := tls.CipherSuites()[i].Name; strings.Contains(name, "CBC") || !strings.Contains(name, "ECDHE") {
			t.Errorf("suite %s has no forward secrecy or no authenticated encryption", name)
		}
	}
	got[0] = 0
	if DefaultServerCiphers()[0] == 0 {
		t.Error("callers share one slice")
	}
}

func TestWithTLSConfig(t *testing.T) {
	ca := testpki.New(t)
	caPath := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(caPath, ca.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	cert, key := ca.Issue(t, "node")

	var cfg NodeConfig
	apply := func(opts ...func(*tls.Config) error) {
		t.Helper()
		if err := WithTLSConfig(opts...)(&cfg); err != nil {
			t.Fatal(err)
		}
	}
	apply(WithKeyPairFromPath(cert, key))
	if c := cfg.TLSConfig; c.MinVersion != tls.VersionTLS12 || c.ClientAuth != tls.RequestClientCert || len(c.Certificates) != 1 {
		t.Errorf("defaults: got %+v", c)
	}

	first := cfg.TLSConfig
	apply(WithCACert(ca.PEM))
	if c := cfg.TLSConfig; len(c.Certificates) != 1 || c.ClientCAs == nil || c.ClientAuth != tls.RequestClientCert {
		t.Errorf("a second WithTLSConfig does not add to the first: got %+v", c)
	}
	if first.ClientCAs != nil {
		t.Error("a second WithTLSConfig changed the configuration of the first")
	}

	apply(WithCAFromPath(caPath))
	if got := cfg.TLSConfig.ClientAuth; got != tls.RequireAndVerifyClientCert {
		t.Errorf("WithCAFromPath: ClientAuth is %v, want RequireAndVerifyClientCert", got)
	}
}

func TestTLSErrorsNameTheFile(t *testing.T) {
	junk := filepath.Join(t.TempDir(), "junk.pem")
	if err := os.WriteFile(junk, []byte("not PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, opt := range map[string]func(*tls.Config) error{
		"missing CA":   WithCAFromPath("/does/not/exist"),
		"missing cert": WithKeyPairFromPath("/does/not/exist", "/does/not/exist"),
	} {
		err := WithTLSConfig(opt)(&NodeConfig{})
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "/does/not/exist") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for name, opt := range map[string]func(*tls.Config) error{
		"CA":   WithCAFromPath(junk),
		"cert": WithKeyPairFromPath(junk, junk),
	} {
		if err := WithTLSConfig(opt)(&NodeConfig{}); err == nil || !strings.Contains(err.Error(), "junk.pem") {
			t.Errorf("%s that is no PEM: got %v, want an error with the file in it", name, err)
		}
	}
	if err := WithCACert(nil)(&tls.Config{}); err == nil {
		t.Error("empty CA: got no error")
	}
}

// requireCert makes client certificates compulsory, as WithCAFromPath does in addition to WithCACert.
func requireCert(cfg *NodeConfig) error {
	cfg.TLSConfig.ClientAuth = tls.RequireAndVerifyClientCert
	return nil
}
