// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"net/http"
	"net/url"
	"strings"
)

// plainWatches requests uncompressed watches of the node's own objects and of events, because compressing each
// small event costs both sides more than it saves. Large watches, such as of other pods, stay compressed. In
// responses to deletes, it requests only the metadata.
type plainWatches struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (p plainWatches) RoundTrip(r *http.Request) (*http.Response, error) {
	switch q := queryOfWatch(r); {
	case q.Get("labelSelector") != "" && q.Get("fieldSelector") == "", q != nil && strings.HasSuffix(r.URL.Path, "/events"):
		r = r.Clone(r.Context())
		r.Header.Set("Accept-Encoding", "identity")
	case r.Method == http.MethodDelete: // no caller reads the response
		r = r.Clone(r.Context())
		r.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json")
	}
	return p.next.RoundTrip(r)
}

// queryOfWatch returns the query of a watch request, or nil for other requests.
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
