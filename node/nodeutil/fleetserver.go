// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// serveRoutes makes the server answer for all nodes.
func (f *Fleet) serveRoutes() {
	routes := api.PodHandlerConfig{Metrics: metricsHandler(), Health: f.isWell, Live: f.isAlive, GetDebug: f.debugPage}
	f.addPages(&routes)
	f.common = api.PodHandler(routes, false)
	if f.base.common.mux != nil {
		authMux{f.base.common.mux}.Handle("/", http.HandlerFunc(f.route))
	}
	if f.server == nil {
		return
	}
	next := f.server.handler
	f.server.handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx := withAsked(req.Context(), f.askedFor(req))
		next.ServeHTTP(w, req.WithContext(ctx))
	})
}

// ofProcess has the first path segments of pages about the whole process.
var ofProcess = []string{"healthz", "readyz", "livez", "statusz", "flagz", "debug"}

// metricsOfProcess has the paths of metrics about the process. The other metrics are about pods, and would be counted once per node.
var metricsOfProcess = []string{"/metrics", "/metrics/slis"}

// route passes a request to its node.
func (f *Fleet) route(w http.ResponseWriter, req *http.Request) {
	a, decided := askedOf(req.Context())
	namespace, pod, aboutPod := podIn(req.URL.Path)
	switch {
	case !decided: // another server authorized the request, possibly with another permission
		http.Error(w, "these routes are served by the server of the fleet only", http.StatusMisdirectedRequest)
	case a != "":
		n := f.Node(string(a))
		if n == nil { // another process has taken over the node since
			http.Error(w, "another process runs the node "+string(a), http.StatusMisdirectedRequest)
			return
		}
		n.handler().ServeHTTP(w, req)
	case aboutPod:
		http.Error(w, "pod "+namespace+"/"+pod+" is on none of the nodes of this process", http.StatusNotFound)
	case slices.Contains(ofProcess, firstPart(req.URL.Path)), slices.Contains(metricsOfProcess, strings.TrimSuffix(req.URL.Path, "/")):
		f.common.ServeHTTP(w, req)
	default:
		http.Error(w, "this port serves several nodes: use an address or a host name of one node", http.StatusMisdirectedRequest)
	}
}

// askedFor returns the node of a request: the node at the address of the connection, the node with the requested
// host name, or the node with the pod in the path.
func (f *Fleet) askedFor(req *http.Request) asked {
	all := f.running.Load()
	if len(f.names) == 1 && f.group == nil {
		return asked(f.names[0])
	}
	if addr, ok := req.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if n := all.byHost[hostOf(addr.String())]; n != nil {
			return asked(n.name)
		}
	}
	if n := all.byHost[hostOf(req.Host)]; n != nil {
		return asked(n.name)
	}
	namespace, name, ok := podIn(req.URL.Path)
	if !ok {
		return ""
	}
	return asked(f.pods.NodeOf(namespace, name))
}

// hostOf returns addr without its port.
func hostOf(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return addr
}

// handler returns the routes of the node. It is created for each request, because a stored handler would need more memory than the rest of
// an idle node.
func (n *Node) handler() http.Handler {
	var mux singleRoute
	n.attachProvider(&mux)
	return mux.handler
}

// singleRoute is a mux for one handler.
type singleRoute struct{ handler http.Handler }

// Handle stores the handler.
func (r *singleRoute) Handle(_ string, h http.Handler) { r.handler = h }
