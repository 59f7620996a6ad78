// SPDX-License-Identifier: Apache-2.0

// Package certfile reads certificates and authorities from files, and reloads changed files.
//
// The guarantee: callers get the current content of the files within a second. Missing, broken or mismatched files are ignored, and the last good
// content stays in use.
//
// Note: nothing runs in the background. A request for the content reads the files, at most ten times a second, to bound the cost of
// handshakes by unknown clients.
package certfile

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// lookEvery is the interval of checks for changes of the files.
const lookEvery = 100 * time.Millisecond

// Followed is the parsed content of files. It is safe for concurrent use.
type Followed[T any] struct {
	paths []string
	parse func(contents [][]byte) (T, error)
	every time.Duration

	mu     sync.Mutex
	value  T         // guarded by mu
	seen   version   // guarded by mu; the source of value
	bad    version   // guarded by mu; the last unusable version
	looked time.Time // guarded by mu
}

// version identifies the contents of files: modification times are too coarse.
type version [sha256.Size]byte

// Follow parses the files at paths whenever they change. An error means that they cannot be used now.
func Follow[T any](parse func(contents [][]byte) (T, error), paths ...string) (*Followed[T], error) {
	f := &Followed[T]{paths: paths, parse: parse, every: lookEvery, looked: time.Now()}
	contents, seen, err := f.read()
	if err != nil {
		return nil, err
	}
	if f.value, err = f.parseValue(contents); err != nil {
		return nil, err
	}
	f.seen = seen
	return f, nil
}

// Current returns the content of the files. If the files have become unusable, it returns an error once, with
// the last good content.
func (f *Followed[T]) Current() (T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if now.Sub(f.looked) < f.every {
		return f.value, nil
	}
	f.looked = now
	contents, found, err := f.read()
	if err == nil && found == f.seen {
		return f.value, nil
	}
	var fresh T
	if err == nil {
		fresh, err = f.parseValue(contents)
	}
	if err != nil {
		if found == f.bad {
			err = nil // the error is logged already
		}
		f.bad = found
		return f.value, err
	}
	f.value, f.seen, f.bad = fresh, found, version{}
	return f.value, nil
}

// read returns the contents of all files. Unreadable files also have a version.
func (f *Followed[T]) read() (contents [][]byte, found version, err error) {
	for _, path := range f.paths {
		data, readErr := os.ReadFile(path)
		err = errors.Join(err, readErr)
		contents = append(contents, data)
	}
	if err != nil {
		return nil, sha256.Sum256([]byte(err.Error())), err
	}
	sum := sha256.New()
	for _, data := range contents {
		fmt.Fprintf(sum, "%d ", len(data))
		sum.Write(data)
	}
	return contents, version(sum.Sum(nil)), nil
}

func (f *Followed[T]) parseValue(contents [][]byte) (T, error) {
	value, err := f.parse(contents)
	if err != nil {
		return value, fmt.Errorf("use %s: %w", strings.Join(f.paths, " and "), err)
	}
	return value, nil
}

// KeyPair follows a certificate and its key, which may be in one file.
func KeyPair(cert, key string) (*Followed[*tls.Certificate], error) {
	return Follow(func(contents [][]byte) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(contents[0], contents[1])
		if err != nil {
			return nil, err
		}
		return &pair, nil
	}, cert, key)
}

// Authorities are the certificates of authorities, and their PEM text.
type Authorities struct {
	Pool *x509.CertPool
	PEM  []byte
}

// CAs follows authorities.
func CAs(path string) (*Followed[Authorities], error) {
	return Follow(func(contents [][]byte) (Authorities, error) {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(contents[0]) {
			return Authorities{}, errors.New("no CA certificate found in PEM data")
		}
		return Authorities{Pool: pool, PEM: bytes.Clone(contents[0])}, nil
	}, path)
}
