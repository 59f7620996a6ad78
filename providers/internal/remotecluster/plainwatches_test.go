// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"net/http"
	"strings"
	"testing"
)

type sentBy func(*http.Request)

func (s sentBy) RoundTrip(r *http.Request) (*http.Response, error) {
	s(r)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestOwnWatchesAreNotCompressed(t *testing.T) {
	for query, want := range map[string]string{
		"/events?watch=true&fieldSelector=c%3Dd":                 "identity",
		"/events?fieldSelector=c%3Dd":                            "",
		"?watch=true&labelSelector=a%3Db":                        "identity",
		"?watch=1&labelSelector=a%3Db":                           "identity",
		"?labelSelector=a%3Db":                                   "",
		"?watch=true":                                            "",
		"?watch=true&labelSelector=a%21%3Db&fieldSelector=c%3Dd": "",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://remote/api/v1/pods"+query, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := plainWatches{sentBy(func(r *http.Request) {
			if got := r.Header.Get("Accept-Encoding"); got != want {
				t.Errorf("%s asks for the encoding %q, want %q", query, got, want)
			}
		})}.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("%s was changed", query)
		}
	}
}

func TestOfWhatIsDeletedOnlyTheMetadataIsAskedFor(t *testing.T) {
	for method, want := range map[string]bool{http.MethodDelete: true, http.MethodGet: false, http.MethodPost: false} {
		r, err := http.NewRequestWithContext(t.Context(), method, "https://remote/api/v1/namespaces/a/pods/b", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
		answer, err := plainWatches{sentBy(func(r *http.Request) {
			if got := r.Header.Get("Accept"); strings.Contains(got, "as=PartialObjectMetadata;") != want || !want && got != "application/vnd.kubernetes.protobuf" {
				t.Errorf("%s asks for %q", method, got)
			}
		})}.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
}
