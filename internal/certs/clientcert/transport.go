// SPDX-License-Identifier: Apache-2.0

// Package clientcert sends requests with a client certificate from a file, and reloads the file when it changes.
//
// The guarantee: a replaced certificate, key or authority is in use within a second, and no request is lost. Requests in progress finish on their
// connection. Files that do not match are ignored, and the last good files stay in use.
//
// Note: nothing runs in the background. A request reads the files.
package clientcert

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// lookEvery is the interval of checks for changes of the files.
	lookEvery = time.Second
	// idleTimeout is the time after which an idle connection is closed.
	idleTimeout = 90 * time.Second
	// idlePerHost is the maximum number of idle connections, for servers without HTTP/2.
	idlePerHost = 25
)

// Reloading returns a copy of cfg that reads the client certificate, its key and the server's authority again whenever their files change. It returns
// cfg itself if cfg names no certificate file, or has its own transport or a plugin. An error means that the files cannot be used now. Each result
// has its own connections.
func Reloading(cfg *rest.Config) (*rest.Config, error) {
	named := cfg.CertFile != "" && cfg.KeyFile != "" && len(cfg.CertData) == 0 && len(cfg.KeyData) == 0
	if !named || cfg.Transport != nil || cfg.ExecProvider != nil || cfg.AuthProvider != nil {
		return cfg, nil
	}
	t := &transport{from: rest.CopyConfig(cfg), every: lookEvery}
	t.seen, t.looked = t.fileVersions(), time.Now()
	var err error
	if t.use, err = t.loadTransport(); err != nil {
		return nil, err
	}
	return t.clientConfig(), nil
}

// Awaiting is Reloading for files that may appear later. Requests fail until then.
func Awaiting(cfg *rest.Config) (*rest.Config, error) {
	t := &transport{from: rest.CopyConfig(cfg), every: lookEvery}
	if cfg.CertFile == "" || cfg.KeyFile == "" || cfg.Transport != nil {
		return nil, errors.New("no files are named to await a client certificate in")
	}
	return t.clientConfig(), nil
}

// clientConfig returns the configuration of a client on t.
func (t *transport) clientConfig() *rest.Config {
	out := rest.CopyConfig(t.from)
	out.Transport = t
	out.TLSClientConfig, out.Dial, out.Proxy = rest.TLSClientConfig{}, nil, nil // t has them
	if !strings.Contains(out.Host, "://") {
		out.Host = "https://" + out.Host
	}
	return out
}

// transport sends each request with the current certificate of the files.
type transport struct {
	from  *rest.Config
	every time.Duration

	mu     sync.Mutex
	use    *http.Transport // guarded by mu; nil while the files are awaited
	seen   [3]version      // guarded by mu; the files from which use was made
	bad    [3]version      // guarded by mu; the files that could not be used
	looked time.Time       // guarded by mu
}

// version identifies the content of a file: modification times are too coarse.
type version [sha256.Size]byte

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	use, err := t.currentTransport()
	if use == nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, fmt.Errorf("there is no client certificate yet: %w", err)
	}
	if err != nil {
		log.G(req.Context()).WithError(err).Warn("client certificate was replaced by files that cannot be used; going on with the last ones")
	}
	return use.RoundTrip(req)
}

// CloseIdleConnections closes idle connections.
func (t *transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.use != nil {
		t.use.CloseIdleConnections()
	}
}

// currentTransport returns the transport to use. If the files have become unusable, it returns an error once, with the
// last good transport.
func (t *transport) currentTransport() (*http.Transport, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.use != nil && now.Sub(t.looked) < t.every {
		return t.use, nil
	}
	t.looked = now
	found := t.fileVersions() // before the load, so that the next check detects a change during the load
	if t.use != nil && found == t.seen {
		return t.use, nil
	}
	fresh, err := t.loadTransport()
	if err != nil {
		if t.use != nil && found == t.bad {
			err = nil // the error is logged already
		}
		t.bad = found
		return t.use, err
	}
	old := t.use
	t.use, t.seen, t.bad = fresh, found, [3]version{}
	if old != nil {
		old.CloseIdleConnections()
	}
	return fresh, nil
}

// fileVersions returns the versions of the files; an unreadable file has the zero version.
func (t *transport) fileVersions() (found [3]version) {
	for i, path := range []string{t.from.CertFile, t.from.KeyFile, t.from.CAFile} {
		if path == "" {
			continue
		}
		if data, err := os.ReadFile(path); err == nil {
			found[i] = sha256.Sum256(data)
		}
	}
	return found
}

// loadTransport makes a transport from the files.
func (t *transport) loadTransport() (*http.Transport, error) {
	read := rest.CopyConfig(t.from)
	if err := rest.LoadTLSFiles(read); err != nil {
		return nil, fmt.Errorf("read client certificate %s, key %s and authority: %w", t.from.CertFile, t.from.KeyFile, err)
	}
	read.CertFile, read.KeyFile, read.CAFile = "", "", "" // client-go must not watch the files, too
	tlsConfig, err := rest.TLSConfigFor(read)
	if err != nil {
		return nil, fmt.Errorf("use client certificate %s with key %s: %w", t.from.CertFile, t.from.KeyFile, err)
	}
	proxy := t.from.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	return utilnet.SetTransportDefaults(&http.Transport{
		Proxy: proxy, DialContext: t.from.Dial, TLSClientConfig: tlsConfig,
		MaxIdleConnsPerHost: idlePerHost, IdleConnTimeout: idleTimeout,
		DisableCompression: t.from.DisableCompression,
	}), nil
}
