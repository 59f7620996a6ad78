// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
)

// idleConnections is how many connections to a service are kept: many pods are created at once.
const idleConnections = 16

// Transport returns a transport for requests to a service: through the proxy of the environment, with TLS 1.2 or
// later, verified by the authorities in a PEM file. With "", the authorities of this machine count.
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
