// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"net"
	"net/http"
	"strings"

	"k8s.io/client-go/kubernetes"
)

// apiServerOf returns the host and port of the API server of the client. It returns "" if the client does not reach the API server directly
// by TLS at the root of a host, or if the client is not from client-go.
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
