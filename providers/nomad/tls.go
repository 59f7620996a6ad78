// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
)

// dialer connects with the files as they are at that moment, so that certificates can be replaced while the node runs.
type dialer struct {
	tls  TLS
	host string
}

func (d dialer) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	config, err := d.config()
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{Config: config}).DialContext(ctx, network, address)
}

func (d dialer) config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: cmp.Or(d.tls.ServerName, d.host)}
	if d.tls.CAFile != "" {
		data, err := os.ReadFile(d.tls.CAFile)
		if err != nil {
			return nil, fmt.Errorf("nomad provider: tls.caFile: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("nomad provider: tls.caFile: %s has no certificate", d.tls.CAFile)
		}
	}
	if d.tls.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(d.tls.CertFile, d.tls.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("nomad provider: tls.certFile: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
