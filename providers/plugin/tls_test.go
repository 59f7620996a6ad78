// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc"
)

// remote is a plugin that listens on the loopback interface with TLS until the test ends.
type remote struct {
	address string
	stop    func()
	shown   atomic.Pointer[big.Int] // the serial number of the last shown certificate of the node
}

// serveTLS serves the provider mock. The issuer issues its certificate, and nodes must show a certificate of
// clients. The address is "" for any.
func serveTLS(t *testing.T, address string, issuer, clients *testpki.Authority, change ...func(*tls.Config)) *remote {
	t.Helper()
	r := &remote{}
	cert, err := tls.LoadX509KeyPair(issuer.Issue(t, "plugin"))
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientCAs: poolOf(clients),
		VerifyConnection: func(s tls.ConnectionState) error {
			r.shown.Store(s.PeerCertificates[0].SerialNumber)
			return nil
		},
	}
	for _, f := range change {
		f(config)
	}
	if address == "" {
		address = "127.0.0.1:0"
	}
	ctx, cancel := context.WithCancel(context.Background())
	listening, done := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		done <- providerrpc.Serve(ctx, newMock(), providerrpc.Options{
			Address: address, TLS: config, Name: "mock", Listening: func(a net.Addr) { listening <- a },
		})
	}()
	r.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
		done <- nil
	}
	t.Cleanup(r.stop)
	select {
	case a := <-listening:
		r.address = a.String()
	case err := <-done:
		t.Fatal(err)
	}
	return r
}

func poolOf(all ...*testpki.Authority) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, a := range all {
		pool.AddCert(a.Cert)
	}
	return pool
}

// files returns the files that a node needs: the authority of the plugin, and a certificate of its own from
// clients.
func files(t *testing.T, plugin, clients *testpki.Authority) *TLS {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, plugin.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	cert, key := clients.Issue(t, "node")
	return &TLS{CAFile: ca, CertFile: cert, KeyFile: key}
}

func dialTLS(t *testing.T, r *remote, f *TLS) (*plugin, error) {
	t.Helper()
	c := Config{Endpoint: "tls://" + r.address, TLS: f}
	c.StartTimeout.Duration = 30 * time.Second
	p, err := newPlugin(testNode(), c)
	if err != nil {
		return nil, err
	}
	p.every, p.patience, p.retry = 20*time.Millisecond, 2*time.Second, 5*time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s, err := p.dialPlugin(ctx)
	if err != nil {
		return nil, err
	}
	s.close(nil)
	return p, p.start(t.Context())
}

func TestTLSPodOverTheNetwork(t *testing.T) {
	ca := testpki.New(t)
	own, err := dialTLS(t, serveTLS(t, "", ca, ca), files(t, ca, ca))
	if err != nil {
		t.Fatal(err)
	}
	p := run(t, own)
	if err := errors.Join(ping(t, p), p.CreatePod(t.Context(), pod("web", "u1"))); err != nil {
		t.Fatal(err)
	}
	if got, err := p.GetPod(t.Context(), "default", "web"); err != nil || got.UID != "u1" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestTLSRefusals(t *testing.T) {
	ca, other := testpki.New(t), testpki.New(t)
	for name, tt := range map[string]struct {
		serve func(*tls.Config)
		node  func(*TLS)
		want  []string
	}{
		"the plugin is of another authority": {
			node: func(f *TLS) { f.CAFile = files(t, other, ca).CAFile },
			want: []string{"the certificate of the plugin is refused", "unknown authority", "tls.caFile ("},
		},
		"the plugin has another name": {
			node: func(f *TLS) { f.ServerName = "plugin.example" },
			want: []string{"the certificate of the plugin is refused", "plugin.example", "tls.serverName"},
		},
		"the certificate of the plugin has expired": {
			serve: func(c *tls.Config) { c.Certificates = []tls.Certificate{expired(t, ca)} },
			want:  []string{"the certificate of the plugin is refused", "expired", "valid now"},
		},
		"the node is of another authority": {
			node: func(f *TLS) { f.CertFile, f.KeyFile = other.Issue(t, "node") },
			want: []string{"the plugin refuses the certificate in tls.certFile (", "authority", "issued by an authority that the plugin trusts"},
		},
		"the certificate of the node has expired": {
			node: func(f *TLS) { f.CertFile, f.KeyFile = ca.IssueExpired(t, "node") },
			want: []string{"tls.certFile", "has expired at ", "renew it"},
		},
		"the plugin trusts one that the node does not send": {
			serve: func(c *tls.Config) { c.ClientCAs = poolOf(other) },
			want:  []string{"the plugin refuses the certificate in tls.certFile ("},
		},
		"no certificate in a file": {
			node: func(f *TLS) { f.CertFile = f.KeyFile },
			want: []string{"tls.certFile and tls.keyFile"},
		},
		"no authority in a file": {
			node: func(f *TLS) { f.CAFile = f.KeyFile },
			want: []string{"tls.caFile", "has no certificate"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var change []func(*tls.Config)
			if tt.serve != nil {
				change = append(change, tt.serve)
			}
			f := files(t, ca, ca)
			if tt.node != nil {
				tt.node(f)
			}
			_, err := dialTLS(t, serveTLS(t, "", ca, ca, change...), f)
			contains(t, err, tt.want...)
			if errdefs.IsNotFound(err) || errdefs.IsInvalidInput(err) {
				t.Errorf("%v has a kind; what the wire does is no answer", err)
			}
		})
	}
}

func expired(t *testing.T, ca *testpki.Authority) tls.Certificate {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(ca.IssueExpired(t, "plugin"))
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// TestTLSStrangers checks that a client without a certificate of the authority cannot send a request to the
// plugin, however TLS is configured.
func TestTLSStrangers(t *testing.T) {
	ca, other := testpki.New(t), testpki.New(t)
	loose := func(c *tls.Config) {
		c.ClientAuth = tls.NoClientCert
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			inner := c.Clone()
			inner.ClientAuth, inner.GetConfigForClient, inner.VerifyConnection = tls.NoClientCert, nil, nil
			return inner, nil
		}
	}
	none := func(c *tls.Config) {
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return &tls.Config{Certificates: c.Certificates}, nil
		}
	}
	talks := func(r *remote, config *tls.Config) error {
		config.NextProtos = []string{"h2"}
		conn, err := tls.Dial("tcp", r.address, config)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1)) // a server that accepts the client speaks first
		return err
	}
	for name, change := range map[string][]func(*tls.Config){"as it is": nil, "that asks for none": {loose}, "that trusts anybody": {none}} {
		r := serveTLS(t, "", ca, ca, change...)
		if err := talks(r, ca.ClientConfig(t, ca, "node")); (err == nil) != (name != "that trusts anybody") {
			t.Errorf("plugin %s, a node with its certificate: %v", name, err)
		}
		for stranger, config := range map[string]*tls.Config{
			"no certificate": ca.ClientConfig(t, nil, ""), "another authority": ca.ClientConfig(t, other, "node"), "expired": ca.ExpiredConfig(t, "node"),
		} {
			t.Run("plugin "+name+", "+stranger, func(t *testing.T) {
				if talks(r, config) == nil {
					t.Error("the plugin talks to a stranger")
				}
			})
		}
	}
}

// TestTLSCertificatesRotate checks that open connections stay, and that new ones use the current content of the
// files.
func TestTLSCertificatesRotate(t *testing.T) {
	before, after := testpki.New(t), testpki.New(t)
	r := serveTLS(t, "", before, before)
	f := files(t, before, before)
	own, err := dialTLS(t, r, f)
	if err != nil {
		t.Fatal(err)
	}
	p := run(t, own)
	if err := p.CreatePod(t.Context(), pod("web", "u1")); err != nil {
		t.Fatal(err)
	}
	old := r.shown.Load()

	after.IssueInto(t, filepath.Dir(f.CertFile), "node")
	if err := os.WriteFile(f.CAFile, after.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := p.GetPod(t.Context(), "default", "web"); err != nil || got.UID != "u1" || r.shown.Load().Cmp(old) != 0 {
		t.Errorf("the connection that stands: got %v, %v", got, err)
	}
	r.stop()
	eventually(t, "the node is not ready", func() bool { return ping(t, p) != nil })
	next := serveTLS(t, r.address, after, after)
	eventually(t, "the node is ready", func() bool { return ping(t, p) == nil })
	if next.shown.Load().Cmp(old) == 0 {
		t.Error("the node shows the certificate of before")
	}
}
