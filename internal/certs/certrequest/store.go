// SPDX-License-Identifier: Apache-2.0

package certrequest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/certificate"
	"k8s.io/klog/v2"
)

// InMemory returns a store without files.
func InMemory() certificate.Store { return &memory{} }

// memory is the store of one manager, which makes one call at a time.
type memory struct{ cert *tls.Certificate }

func (m *memory) Current() (*tls.Certificate, error) {
	if m.cert == nil {
		none := certificate.NoCertKeyError("none was granted yet")
		return nil, &none
	}
	return m.cert, nil
}

func (m *memory) Update(certPEM, keyPEM []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM) // with its Leaf
	if err != nil {
		return nil, fmt.Errorf("the signer's certificate is of no use: %w", err)
	}
	m.cert = &pair
	return m.cert, nil
}

// files are the files of a kubelet, without older keys.
type files struct {
	certificate.FileStore
	dir, prefix string
}

// InFiles returns a store in dir with a kubelet's file names: prefix-current.pem links to the file with
// certificate and key.
func InFiles(dir, prefix string) (certificate.FileStore, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory for certificates: %w", err)
	}
	store, err := certificate.NewFileStoreWithLogger(klog.Background().V(4), prefix, dir, dir, "", "")
	if err != nil {
		return nil, fmt.Errorf("use certificates in %s: %w", dir, err)
	}
	return &files{FileStore: store, dir: dir, prefix: prefix}, nil
}

// Update writes the pair and removes the previous pair.
func (f *files) Update(certPEM, keyPEM []byte) (*tls.Certificate, error) {
	before, beforeErr := os.Readlink(f.CurrentPath())
	fresh, err := f.FileStore.Update(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	after, err := os.Readlink(f.CurrentPath())
	ours := beforeErr == nil && err == nil && before != after && filepath.Dir(before) == filepath.Dir(after)
	if ours {
		err = os.Remove(before)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the key before the present one: %w", err)
	}
	return fresh, nil
}
