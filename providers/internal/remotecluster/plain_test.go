// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"net/http"
	"testing"
)

type sentBy func(*http.Request)

func (s sentBy) RoundTrip(r *http.Request) (*http.Response, error) {
	s(r)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestOwnWatchesAreNotCompressed(t *testing.T) {
	for query, want := range map[string]string{
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
