// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"net/http"
	"net/url"
	"strings"
)

// plainWatches asks for watches of the node's own objects as they are. Compressed, each of their small events would be a stream of its own,
// which costs both sides more than it saves. What may be large, as the pods of others, is compressed as ever.
type plainWatches struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (p plainWatches) RoundTrip(r *http.Request) (*http.Response, error) {
	if q := queryOfWatch(r); q.Get("labelSelector") != "" && q.Get("fieldSelector") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("Accept-Encoding", "identity")
	}
	return p.next.RoundTrip(r)
}

// queryOfWatch is what a watch asks for; nil if the request is none. Most are not.
func queryOfWatch(r *http.Request) url.Values {
	if !strings.Contains(r.URL.RawQuery, "watch=") {
		return nil
	}
	q := r.URL.Query()
	if watches := q.Get("watch"); watches != "true" && watches != "1" {
		return nil
	}
	return q
}
