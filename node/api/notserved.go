// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"strings"
)

// notServed maps the first path segment of kubelet routes that a virtual node does not serve to the reason.
var notServed = map[string]string{
	"logs":       "a virtual node has no log files of its own; use kubectl logs for containers",
	"checkpoint": "the provider cannot checkpoint containers",
	"run":        "commands run through /exec",
	"debug":      "it is not turned on: profiling for /debug/pprof, SetVerbosity for PUT /debug/flags/v",
}

// nowhere answers a request that matches no route: 501 with the reason if a kubelet would serve the path, else 404.
func nowhere(w http.ResponseWriter, req *http.Request) {
	first, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	if reason, ok := notServed[first]; ok {
		http.Error(w, "501 not implemented: "+reason, http.StatusNotImplemented)
		return
	}
	NotFound(w, req)
}
