// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"net/http"
	"net/url"
	"strings"
)

// plainWatches asks for watches of the node's own objects, and of events, as they are. Compressed, each of their small events would be a stream of
// its own, which costs both sides more than it saves. What may be large, as the pods of others, is compressed as ever. It also asks for no more of what
// is deleted than its metadata.
type plainWatches struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (p plainWatches) RoundTrip(r *http.Request) (*http.Response, error) {
	switch q := queryOfWatch(r); {
	case q.Get("labelSelector") != "" && q.Get("fieldSelector") == "", q != nil && strings.HasSuffix(r.URL.Path, "/events"):
		r = r.Clone(r.Context())
		r.Header.Set("Accept-Encoding", "identity")
	case r.Method == http.MethodDelete: // nobody reads what was deleted
		r = r.Clone(r.Context())
		r.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json")
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
