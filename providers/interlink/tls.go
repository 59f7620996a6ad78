// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
)

// use makes the transport read the files for each connection, so that replaced files take effect.
func (t TLS) use(transport *http.Transport, dialer *net.Dialer) error {
	config, err := t.config()
	if err != nil {
		return fmt.Errorf("interlink provider: tls: %w", err)
	}
	transport.TLSClientConfig = config // behind a proxy of the environment
	transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		config, err := t.config()
		if err != nil {
			return nil, err
		}
		return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, network, address)
	}
	return nil
}

// state differs when a file was replaced.
func (t TLS) state() (all string) {
	for _, file := range []string{t.CAFile, t.CertFile, t.KeyFile} {
		if info, err := os.Stat(file); err == nil {
			all += fmt.Sprint(info.ModTime().UnixNano(), info.Size(), " ")
		}
	}
	return all
}

func (t TLS) config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("caFile: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if cert, err := x509.ParseCertificate(pem); err == nil { // interLink's own virtual kubelet reads DER
			config.RootCAs.AddCert(cert)
		} else if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("caFile: %s has no certificate", t.CAFile)
		}
	}
	if t.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("certFile and keyFile: %w", err)
		}
		config.Certificates = []tls.Certificate{cert}
	}
	return config, nil
}
