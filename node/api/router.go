// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"

	"github.com/gorilla/mux"
)

// ServeMux is the mux for the routes. *http.ServeMux implements it.
type ServeMux interface {
	Handle(path string, h http.Handler)
}

// router never redirects: streaming clients do not follow redirects, and a redirect would bypass the authorization of the requested path.
type router struct{ *mux.Router }

func newRouter() router {
	r := mux.NewRouter().SkipClean(true)
	r.Use(logVars)
	r.NotFoundHandler = http.HandlerFunc(nowhere)
	r.MethodNotAllowedHandler = http.HandlerFunc(methodNotAllowed)
	return router{r}
}

// handle serves path with and without a trailing slash.
func (r router) handle(path string, h http.Handler, methods ...string) {
	r.Handle(path, h).Methods(methods...)
	r.Handle(path+"/", h).Methods(methods...)
}
