// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/certfile"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// WithKeyPairFiles returns an option for WithTLSConfig that serves with the certificate and key in the PEM files
// cert and key. It reads them at each handshake: replaced files take effect within a second, without a restart,
// and files that do not match each other yet are ignored. An error means that the files cannot be used now.
func WithKeyPairFiles(cert, key string) func(*tls.Config) error {
	return func(cfg *tls.Config) error {
		files, err := certfile.KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("serving certificate: %w", err)
		}
		cfg.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := files.Current()
			if err != nil {
				log.G(hello.Context()).WithError(err).Warn("The serving certificate was replaced by files that cannot be used; going on with the last ones")
			}
			return pair, nil
		}
		return nil
	}
}

// WithClientCAFile accepts clients with a certificate of an authority in the PEM file at path. It reads the file
// at each request: a replaced authority takes effect within a second, also for existing connections. Bearer
// tokens are accepted as well. It replaces TLSConfig.ClientCAs, and is an error together with them.
func WithClientCAFile(path string) NodeOpt {
	return func(cfg *NodeConfig) error {
		cas, err := ClientCAFile(path)
		if err != nil {
			return err
		}
		cfg.clientCAs = cas
		return nil
	}
}

// ClientCAFile returns the provider that WithClientCAFile uses, for programs that create their own WebhookAuth. Its Run need not be called.
func ClientCAFile(path string) (dynamiccertificates.CAContentProvider, error) {
	files, err := certfile.CAs(path)
	if err != nil {
		return nil, fmt.Errorf("client CA: %w", err)
	}
	return fileCAs{path: path, files: files}, nil
}

// fileCAs provides the authorities in a file.
type fileCAs struct {
	path  string
	files *certfile.Followed[certfile.Authorities]
}

func (c fileCAs) Name() string                           { return c.path }
func (fileCAs) AddListener(dynamiccertificates.Listener) {}
func (c fileCAs) CurrentCABundleContent() []byte         { return c.current().PEM }

func (c fileCAs) VerifyOptions() (x509.VerifyOptions, bool) {
	return clientVerification(c.current().Pool), true
}

func (c fileCAs) current() certfile.Authorities {
	cas, err := c.files.Current()
	if err != nil {
		log.G(context.Background()).WithError(err).Warn("The authorities of clients were replaced by a file that cannot be used; going on with the last ones")
	}
	return cas
}

func clientVerification(pool *x509.CertPool) x509.VerifyOptions {
	return x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
}
