// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// proxy stands before a backend with an HTTP interface, and counts the requests.
type proxy struct {
	ledger
	server *http.Server
	ended  chan struct{}

	known sync.Mutex
	pods  map[string]lived // guarded by known; by namespace and name, if the backend gets pods as interLink's server does
}

// startProxy forwards the connections of the listener to an address of a network, tcp or unix.
func startProxy(from net.Listener, network, address string) *proxy {
	host := "backend"
	if network == "tcp" {
		host = address
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
		MaxIdleConnsPerHost: 64, DisableCompression: true,
	}
	to := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: host}) },
		Transport:     transport,
		FlushInterval: -1,                         // streams are handed on at once
		ErrorLog:      log.New(io.Discard, "", 0), // a client that does not read the whole response is no error
	}
	p := &proxy{ended: make(chan struct{}), pods: map[string]lived{}}
	p.server = &http.Server{Handler: p.countingHandler(to), ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(p.ended)
		_ = p.server.Serve(from) // Serve always returns an error
		transport.CloseIdleConnections()
	}()
	return p
}

// stop ends it, with all requests in progress.
func (p *proxy) stop() {
	_ = p.server.Close()
	<-p.ended
}

// countingHandler counts requests, and records from the answers which pods were made and ended.
func (p *proxy) countingHandler(to http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.recordRequest(time.Now(), requestKey(r.Method, r.URL.Path))
		if r.URL.Path != "/create" && r.URL.Path != "/delete" {
			to.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		to.ServeHTTP(&answered{w, func() { p.recordAnswer(r.URL.Path, body, time.Now()) }}, r)
	})
}

// answered records a success before the client gets it.
type answered struct {
	http.ResponseWriter
	success func()
}

// WriteHeader implements http.ResponseWriter.
func (a *answered) WriteHeader(code int) {
	if code == http.StatusOK {
		a.success()
	}
	a.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController find the wrapped writer.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// recordAnswer records when interLink's server has made a pod, or when the pod has ended. The first time counts.
func (p *proxy) recordAnswer(path string, body []byte, at time.Time) {
	pod := &corev1.Pod{}
	create := struct{ Pod *corev1.Pod }{pod}
	into := any(&create)
	if path == "/delete" {
		into = pod
	}
	if json.Unmarshal(body, into) != nil || create.Pod == nil {
		return // the server has taken it, so it is something else
	}
	p.known.Lock()
	defer p.known.Unlock()
	name := pod.Namespace + "/" + pod.Name
	k := p.pods[name]
	switch {
	case path == "/create" && k.began.IsZero():
		k.began = at
	case path == "/delete" && k.ended.IsZero():
		k.ended = at
	}
	p.pods[name] = k
}

func (p *proxy) podLives(_ context.Context, namespace string) (map[string]lived, error) {
	p.known.Lock()
	defer p.known.Unlock()
	all := map[string]lived{}
	for name, k := range p.pods {
		if short, ok := strings.CutPrefix(name, namespace+"/"); ok {
			all[short] = k
		}
	}
	return all, nil
}

// uid matches the ID of an object in a path.
var uid = regexp.MustCompile(`^.*[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// requestKey returns the kind under which a request is counted, such as "DELETE /v1/job/*".
func requestKey(method, path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = uid.ReplaceAllString(part, "*")
	}
	return fmt.Sprintf("%s %s", method, strings.Join(parts, "/"))
}
