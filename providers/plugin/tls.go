// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"google.golang.org/grpc/credentials"
)

// loadFiles reads the files, and returns a TLS configuration.
func (t *TLS) loadFiles(now time.Time) (*tls.Config, error) {
	authorities, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("tls.caFile: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("tls.caFile: %s has no certificate", t.CAFile)
	}
	cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("tls.certFile and tls.keyFile: %w", err)
	}
	if end := cert.Leaf.NotAfter; now.After(end) {
		return nil, fmt.Errorf("tls.certFile: the certificate in %s has expired at %s: renew it; it is read again for each connection", t.CertFile, end.UTC().Format(time.RFC3339))
	}
	return &tls.Config{
		RootCAs: pool, ServerName: t.ServerName, MinVersion: tls.VersionTLS12,
		// Always send the certificate. By default, Go sends none if the plugin requests other authorities, and
		// the plugin would then report a missing certificate.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil },
	}, nil
}

// explained wraps credentials, and reports which side refused the certificate of the other. gRPC keeps such
// errors only as text.
type explained struct {
	credentials.TransportCredentials
	files  *TLS
	refuse func(error)
}

// Clone implements credentials.TransportCredentials.
func (e explained) Clone() credentials.TransportCredentials {
	return explained{e.TransportCredentials.Clone(), e.files, e.refuse}
}

// ClientHandshake records the reason of a failure. A plugin refuses the certificate of the node only after the
// client's handshake, so the returned connection records that, too.
func (e explained) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := e.TransportCredentials.ClientHandshake(ctx, authority, raw)
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted):
		e.refuse(fmt.Errorf("the certificate of the plugin is refused: %w: it must be valid now, issued by an authority in tls.caFile (%s), and for the name %s, or that of tls.serverName",
			untrusted.Err, e.files.CAFile, e.files.ServerName))
	case err != nil:
		e.keepRefusal(err)
		e.refuse(fmt.Errorf("TLS with the plugin: %w", err))
	}
	if err != nil {
		return nil, nil, err
	}
	return refusable{conn, e}, info, nil
}

// keepRefusal records err if it is a TLS alert from the plugin.
func (e explained) keepRefusal(err error) {
	var sent *net.OpError
	if errors.As(err, &sent) && sent.Op == "remote error" {
		e.refuse(fmt.Errorf("the plugin refuses the certificate in tls.certFile (%s): %w: it must be valid now, and issued by an authority that the plugin trusts", e.files.CertFile, sent.Err))
	}
}

// refusable is a connection that records a refusal of the node's certificate.
type refusable struct {
	net.Conn
	e explained
}

// Read records a TLS alert of the plugin.
func (r refusable) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	if err != nil {
		r.e.keepRefusal(err)
	}
	return n, err
}

// Write reads the TLS alert after an error, because the plugin sends it before it closes the connection.
func (r refusable) Write(p []byte) (int, error) {
	n, err := r.Conn.Write(p)
	if err != nil {
		_ = r.Conn.SetReadDeadline(time.Now().Add(time.Second)) // fails on a closed connection, like the read
		_, reason := r.Conn.Read(make([]byte, 1))
		r.e.keepRefusal(reason)
	}
	return n, err
}
