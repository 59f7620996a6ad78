// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"strings"
)

// notServed are parts of a kubelet's API that a virtual node does without, by the first part of
// the path, and why.
var notServed = map[string]string{
	"logs":       "a virtual node has no log files of its own to show; see kubectl logs for those of containers",
	"checkpoint": "the provider cannot checkpoint containers",
	"run":        "commands run through /exec",
	"debug":      "it is not turned on: profiling for /debug/pprof, SetVerbosity for PUT /debug/flags/v",
}

// nowhere answers a request that no route takes: 501 with the reason for what a kubelet would
// serve, else 404.
func nowhere(w http.ResponseWriter, req *http.Request) {
	first, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	if reason, ok := notServed[first]; ok {
		http.Error(w, "501 not implemented: "+reason, http.StatusNotImplemented)
		return
	}
	NotFound(w, req)
}
