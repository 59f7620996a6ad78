// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"reflect"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// defaultAuth returns the server's additional authentication and authorization, or nil if the program has explicitly disabled it. A
// TLSConfig that requires client certificates does not disable it: every node of a cluster has a certificate from the same authority.
func defaultAuth(cfg *NodeConfig, client kubernetes.Interface, nodeName string) (Auth, error) {
	if cfg.unauthenticated {
		return nil, nil
	}
	cas := cfg.clientCAs
	if pool := cfg.TLSConfig.ClientCAs; pool != nil {
		if cas != nil {
			return nil, errors.New("the authorities of clients are given twice: in TLSConfig.ClientCAs, and by WithClientCAFile")
		}
		cas = clientCAs{pool}
	}
	return WebhookAuth(client, nodeName, func(auth *WebhookAuthConfig) error {
		auth.AuthnConfig.ClientCertificateCAContentProvider = cas
		auth.ReviewPods = cfg.reviewPods
		return nil
	})
}

// authenticates reports whether h came from WithAuth. It looks through wrappers with an Unwrap method.
func authenticates(h http.Handler) bool {
	for h != nil {
		if _, ok := h.(*authHandler); ok {
			return true
		}
		wrapper, ok := h.(interface{ Unwrap() http.Handler })
		if !ok {
			return false
		}
		h = wrapper.Unwrap()
	}
	return false
}

// withServerAuth returns the server's handler for cfg.Handler.
func withServerAuth(auth Auth, cfg *NodeConfig) http.Handler {
	wrapped := cfg.mux != nil && !sameValue(cfg.Handler, cfg.mux)
	if auth == nil || authenticates(cfg.Handler) || wrapped {
		return cfg.Handler // authMux protects the routes
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		authenticateOnce(auth, cfg.Handler, w, req)
	})
}

// plainPaths returns a handler that answers 404 for every path that routers read in different ways, and passes other requests to h. An
// http.ServeMux in h would redirect such a path without authorization. The 404 too needs authorization.
func plainPaths(auth Auth, h http.Handler) http.Handler {
	nowhere := http.HandlerFunc(api.NotFound)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case isPlain(req.URL.Path):
			h.ServeHTTP(w, req)
		case auth == nil:
			nowhere(w, req)
		default:
			authenticateOnce(auth, nowhere, w, req)
		}
	})
}

// authenticateOnce calls next if auth, or an earlier Auth, allows the request. It leaves the credentials in the request for a WithAuth in
// next.
func authenticateOnce(auth Auth, next http.Handler, w http.ResponseWriter, req *http.Request) {
	if _, ok := callerOf(req.Context()); ok {
		next.ServeHTTP(w, req)
		return
	}
	who, refused := decide(auth, req.Clone(req.Context())) // authenticators remove the token from the header
	if refused != nil {
		refused.write(w, req)
		return
	}
	next.ServeHTTP(w, req.WithContext(withCaller(req.Context(), who)))
}

type routeAuthKey struct{}

// withRouteAuth makes the routes of an authMux require auth. The server adds auth to every request; a program that serves the mux with its
// own server must authenticate itself.
func withRouteAuth(ctx context.Context, auth Auth) context.Context {
	return context.WithValue(ctx, routeAuthKey{}, auth)
}

// authMux authenticates inside the handlers around mux, where it can see whether a WithAuth has allowed the request.
type authMux struct{ api.ServeMux }

func (m authMux) Handle(path string, h http.Handler) {
	m.ServeMux.Handle(path, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		auth, ok := req.Context().Value(routeAuthKey{}).(Auth)
		if !ok {
			h.ServeHTTP(w, req)
			return
		}
		authenticateOnce(auth, h, w, req)
	}))
}

// sameValue compares two interfaces without a panic for values that cannot be compared, such as functions.
func sameValue(a, b any) bool {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	return va.IsValid() && vb.IsValid() && va.Comparable() && vb.Comparable() && a == b
}

// clientCAs provides the authorities of a pool for authentication. A pool cannot return its certificates as PEM; authentication does not
// need that.
type clientCAs struct{ pool *x509.CertPool }

var _ dynamiccertificates.CAContentProvider = clientCAs{}

func (clientCAs) Name() string                             { return "TLSConfig.ClientCAs" }
func (clientCAs) CurrentCABundleContent() []byte           { return nil }
func (clientCAs) AddListener(dynamiccertificates.Listener) {}

func (c clientCAs) VerifyOptions() (x509.VerifyOptions, bool) {
	return clientVerification(c.pool), true
}
