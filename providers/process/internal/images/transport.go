// SPDX-License-Identifier: Apache-2.0

package images

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// tlsOnly lets no request go without TLS, but to hosts that the configuration names. It is the last one before the network, so
// that also what registries lead to is held to it: redirects, servers of tokens, and addresses in manifests. The client
// below takes this machine and private addresses for safe, which they are not: any user may listen there.
type tlsOnly struct {
	next http.RoundTripper
	// plain are the hosts that need no TLS, with their ports.
	plain map[string]bool
}

// RoundTrip sends the request, or refuses it.
func (t *tlsOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !t.plain[r.URL.Host] {
		return nil, fmt.Errorf("%s is not spoken to without TLS: it is not among insecureRegistries", r.URL.Host)
	}
	return t.next.RoundTrip(r)
}

func newTransport(options Options) http.RoundTripper {
	t := &tlsOnly{next: remote.DefaultTransport, plain: map[string]bool{}}
	for _, host := range options.Insecure {
		t.plain[host] = true
	}
	for _, mirror := range options.Mirrors {
		if u, err := url.Parse(mirror); err == nil && u.Scheme == "http" {
			t.plain[u.Host] = true
		}
	}
	return t
}
