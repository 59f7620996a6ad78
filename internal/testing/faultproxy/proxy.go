// SPDX-License-Identifier: Apache-2.0

// Package faultproxy stands between a node and its API server in tests and disturbs the traffic.
//
// A [Proxy] terminates the client's TLS with its own certificate and forwards each request to the API server, with the credentials of the
// proxy. A request with a bearer token keeps the token instead. Below HTTP the proxy resets connections, refuses them, drops packets and
// slows bytes down. Above, a [Fault] delays requests, answers them itself, or shows an older view. The proxy records every request. Any
// goroutine may change any of this at any time, and Close ends everything.
//
// Note: requests answered by a fault never reach the API server, but they are in the record.
package faultproxy

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Proxy is a running proxy. Create one with Start.
type Proxy struct {
	*link
	*record

	// Set by Start, then constant.
	server    *httptest.Server
	forward   *httputil.ReverseProxy
	itself    http.RoundTripper // with the credentials of Start
	anonymous http.RoundTripper // for requests with credentials of their own
	end       context.CancelFunc
	handlers  sync.WaitGroup

	mu      sync.Mutex
	faults  []*active          // guarded by mu; the first match counts
	watches map[*watching]bool // guarded by mu; the open watches
}

// Start returns a proxy in front of the API server of upstream, on a port of its own.
func Start(upstream *rest.Config) (*Proxy, error) {
	target, err := url.Parse(upstream.Host)
	if err != nil {
		return nil, fmt.Errorf("parse the API server's address: %w", err)
	}
	p := &Proxy{record: newRecord(), watches: map[*watching]bool{}}
	if p.itself, err = newTransport(upstream); err != nil {
		return nil, err
	}
	if p.anonymous, err = newTransport(rest.AnonymousClientConfig(upstream)); err != nil {
		return nil, err
	}
	if p.link, err = listenLink(); err != nil {
		return nil, err
	}
	quiet := log.New(io.Discard, "", 0) // failures are intended here
	p.forward = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     p,
		FlushInterval: -1, // a watch must stream
		ErrorLog:      quiet,
		// The client gets no response, as from a stopped API server.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	ctx, end := context.WithCancel(context.Background())
	p.end = end
	p.server = httptest.NewUnstartedServer(p)
	_ = p.server.Listener.Close() // replaced by the proxy's own listener
	p.server.Listener = listener{p.link}
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = quiet
	p.server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	p.server.StartTLS()
	return p, nil
}

// newTransport returns a transport that shares no connection with others.
func newTransport(config *rest.Config) (http.RoundTripper, error) {
	config = rest.CopyConfig(config)
	config.Dial = (&net.Dialer{}).DialContext // keeps client-go from handing out a cached transport
	rt, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("make the proxy's transport: %w", err)
	}
	return rt, nil
}

// RoundTrip forwards a request to the API server.
func (p *Proxy) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Authorization") != "" {
		return p.anonymous.RoundTrip(req)
	}
	return p.itself.RoundTrip(req)
}

// authorityPEM returns the proxy's certificate, which clients trust.
func (p *Proxy) authorityPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
}

// Config returns a client's configuration, without a rate limit, that speaks protobuf as a daemon does.
func (p *Proxy) Config() *rest.Config {
	return &rest.Config{
		Host: p.server.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: p.authorityPEM()},
		ContentConfig: rest.ContentConfig{
			ContentType:        runtime.ContentTypeProtobuf,
			AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
		},
	}
}

// Kubeconfig writes a kubeconfig file into dir and returns its path.
func (p *Proxy) Kubeconfig(dir string) (string, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["proxy"] = &clientcmdapi.Cluster{Server: p.server.URL, CertificateAuthorityData: p.authorityPEM()}
	config.AuthInfos["nobody"] = &clientcmdapi.AuthInfo{}
	config.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy", AuthInfo: "nobody"}
	config.CurrentContext = "proxy"
	path := filepath.Join(dir, "kubeconfig-through-proxy")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("write kubeconfig through the proxy: %w", err)
	}
	return path, nil
}

// Close ends the proxy with all its goroutines, and returns when they have ended.
func (p *Proxy) Close() {
	p.end()
	p.link.shutLink()
	p.server.Close()
	p.handlers.Wait()
	for _, rt := range []http.RoundTripper{p.itself, p.anonymous} {
		utilnet.CloseIdleConnectionsFor(rt)
	}
}
