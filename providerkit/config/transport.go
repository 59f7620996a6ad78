// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

// idleConnections is the number of idle connections to a service that are kept, because many pods are created at once.
const idleConnections = 16

// Transport returns a transport for requests to a service: through the proxy of the environment, with TLS 1.2 or later, verified by the
// authorities in a PEM file. With "", the authorities of this machine apply.
func Transport(caFile string) (*http.Transport, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = idleConnections
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile == "" {
		return t, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("read the authorities: %w", err)
	}
	t.TLSClientConfig.RootCAs = x509.NewCertPool()
	if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read the authorities: %s has no certificate in PEM", caFile)
	}
	return t, nil
}

// TLSFiles are the PEM files of a connection to a service. They are read again for each connection, so that a file can be replaced. An
// empty name means no file; without CAFile, the authorities of this machine apply.
type TLSFiles struct {
	CAFile, CertFile, KeyFile string
	// ServerName is the name in the certificate of the service. Default: the host of the address.
	ServerName string
}

// Config returns the TLS configuration with the current files.
func (f TLSFiles) Config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.ServerName}
	if f.CAFile != "" {
		data, err := os.ReadFile(f.CAFile)
		if err != nil {
			return nil, fmt.Errorf("caFile: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if one, err := x509.ParseCertificate(data); err == nil { // some tools write DER
			c.RootCAs.AddCert(one)
		} else if !c.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("caFile: %s has no certificate", f.CAFile)
		}
	}
	if f.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("certFile and keyFile: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// DialTLS opens a connection, for the field DialTLSContext of a transport.
func (f TLSFiles) DialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := f.Config()
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{NetDialer: &net.Dialer{Timeout: dialTimeout}, Config: c}).DialContext(ctx, network, address)
}

// dialTimeout bounds the opening of a connection.
const dialTimeout = 10 * time.Second

// RetryAfter returns the delay from the header Retry-After in seconds, or 0.
func RetryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
