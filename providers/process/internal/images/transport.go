// SPDX-License-Identifier: Apache-2.0

package images

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// tlsOnly refuses requests without TLS, except to configured hosts. It is the last transport before the network,
// so it also covers the hosts that registries refer to: redirects, token servers, and addresses in manifests. The
// registry client allows plain HTTP to localhost and private addresses, which is unsafe: any user may listen
// there.
type tlsOnly struct {
	next http.RoundTripper
	// plain are the hosts, as host:port, that need no TLS.
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
