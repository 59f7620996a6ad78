// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"net"
	"net/http"
	"strings"

	"k8s.io/client-go/kubernetes"
)

// apiServerOf is the host and port of the API server that the client talks to; "" where it is not reached directly by TLS at the root of a
// host, and for a client that is not client-go's.
func apiServerOf(client kubernetes.Interface) string {
	set, ok := client.(*kubernetes.Clientset)
	if !ok {
		return ""
	}
	asked := set.CoreV1().RESTClient().Get()
	to := asked.URL()
	if to == nil || to.Scheme != "https" || !strings.HasPrefix(to.Path, "/api/v1") {
		return ""
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: to}); err != nil || proxy != nil {
		return ""
	}
	if to.Port() == "" {
		return net.JoinHostPort(to.Hostname(), "443")
	}
	return to.Host
}
