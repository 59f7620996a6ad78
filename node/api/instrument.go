// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"

	"github.com/gorilla/mux"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/trace"
)

// InstrumentHandler opens a span for each request and adds the path and the
// variables of the route to the log fields of its context. The query stays out of
// both: it may hold the command of an exec.
func InstrumentHandler(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx, span := trace.StartSpan(req.Context(), "api.ServeHTTP")
		defer span.End()
		ctx = span.WithFields(ctx, log.Fields{
			"uri":  req.URL.Path,
			"vars": mux.Vars(req),
		})
		handler.ServeHTTP(w, req.WithContext(ctx))
	})
}
