// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"net/http"
	"path"
	"slices"
	"strings"

	"k8s.io/streaming/pkg/httpstream"
)

// isPlain reports whether every router reads p in the same way: it begins with a slash and has no empty, "." or ".." part. A trailing slash
// is allowed.
func isPlain(p string) bool {
	plain := strings.TrimSuffix(p, "/")
	return p == "/" || len(plain) > 1 && plain[0] == '/' && path.Clean(p) == plain
}

// streams has the first path segments, in lower case, of routes that run commands.
var streams = []string{"exec", "attach", "portforward", "run"}

// isStream reports whether req may run a command or open a stream. This includes every upgrade request, wherever the program has mounted
// the routes, and every path that a router could read as another path.
func isStream(req *http.Request) bool {
	if !isPlain(req.URL.Path) || httpstream.IsUpgradeRequest(req) {
		return true
	}
	return slices.Contains(streams, strings.ToLower(firstPart(req.URL.Path)))
}

// podSubresources has the API server's names for the kubelet paths about a pod.
var podSubresources = map[string]string{
	"containerLogs": "log",
	"exec":          "exec",
	"run":           "exec",
	"attach":        "attach",
	"portForward":   "portforward",
}

// podIn returns the pod in a kubelet path.
func podIn(path string) (namespace, name string, ok bool) {
	parts := strings.SplitN(path, "/", 5)
	if len(parts) < 4 || parts[0] != "" {
		return "", "", false
	}
	_, ok = podSubresources[parts[1]]
	if !ok {
		return "", "", false
	}
	return parts[2], parts[3], true
}

func firstPart(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first
}
