// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"strings"
)

// notServed has the parts of a kubelet's API that a virtual node does not serve, by the first part of the path,
// and the reasons.
var notServed = map[string]string{
	"logs":       "a virtual node has no log files of its own; use kubectl logs for containers",
	"checkpoint": "the provider cannot checkpoint containers",
	"run":        "commands run through /exec",
	"debug":      "it is not turned on: profiling for /debug/pprof, SetVerbosity for PUT /debug/flags/v",
}

// nowhere answers a request without a route: 501 with the reason if a kubelet would serve the path, else 404.
func nowhere(w http.ResponseWriter, req *http.Request) {
	first, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	if reason, ok := notServed[first]; ok {
		http.Error(w, "501 not implemented: "+reason, http.StatusNotImplemented)
		return
	}
	NotFound(w, req)
}
