// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"

	"github.com/gorilla/mux"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/trace"
)

// InstrumentHandler opens a span for each request and adds the path, as uri, to
// the log fields of its context. Inside a gorilla/mux route it adds the
// variables of the route too, as vars. The query stays out: it may hold the
// command of an exec.
func InstrumentHandler(handler http.Handler) http.Handler { return &instrumented{handler} }

type instrumented struct{ handler http.Handler }

// ServeHTTP serves the handler within a span.
func (i *instrumented) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	ctx, span := trace.StartSpan(req.Context(), "api.ServeHTTP")
	defer span.End()
	fields := log.Fields{"uri": req.URL.Path}
	if vars := mux.Vars(req); len(vars) > 0 {
		fields["vars"] = vars
	}
	ctx = span.WithFields(ctx, fields)
	i.handler.ServeHTTP(w, req.WithContext(ctx))
}

// Unwrap returns the instrumented handler, so that a server can see that the handler already authenticates.
func (i *instrumented) Unwrap() http.Handler { return i.handler }

// logVars adds the variables of the route to the log fields of a request. A router applies it after matching; InstrumentHandler runs before
// the router, when the variables are unknown.
func logVars(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if vars := mux.Vars(req); len(vars) > 0 {
			ctx := req.Context()
			req = req.WithContext(log.WithLogger(ctx, log.G(ctx).WithField("vars", vars)))
		}
		next.ServeHTTP(w, req)
	})
}
