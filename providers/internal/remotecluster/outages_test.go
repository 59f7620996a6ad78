// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestWatchDoesNotGoOnInAnOlderState(t *testing.T) {
	version, status, lists, restores := "", http.StatusOK, 0, 0
	seen := outages{restored: func() { restores++ }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			return
		}
		if lists++; r.URL.Query().Get("limit") != "1" || r.URL.Query().Has("resourceVersion") || r.URL.Query().Get("labelSelector") != "a=b" {
			t.Errorf("asked %s, want a small list of now", r.URL)
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": %q}, "items": []}`, version)
	}))
	defer server.Close()
	access := &rest.Config{Host: server.URL}
	access.Wrap(func(next http.RoundTripper) http.RoundTripper { return notOlder{next, &seen} })
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, now string
		status    int
		refused   bool
		fails     bool
		lists     int
	}{
		{from: "100", now: "100", lists: 1},
		{from: "100", now: "2000", lists: 1},
		{from: "100", now: "99", refused: true, lists: 1},
		{from: "1000", now: "999", refused: true, lists: 1},
		{from: "100", now: "", lists: 1},
		{from: "100", now: "another-kind-of-version", lists: 1},
		{from: "100", now: "99", status: http.StatusForbidden, lists: 1},
		{from: "100", now: "200", status: http.StatusServiceUnavailable, fails: true, lists: 1},
		{from: "100", now: "200", refused: true, lists: 1}, // this version 200 may differ from the one before the outage
		{from: "100", now: "200", lists: 1},
		{from: "", now: "99"},
		{from: "0", now: "99"},
	} {
		version, status, lists, restores = c.now, max(c.status, http.StatusOK), 0, 0
		w, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: c.from, LabelSelector: "a=b"})
		if err == nil {
			w.Stop()
		}
		if apierrors.IsResourceExpired(err) != c.refused || (err != nil) != (c.refused || c.fails) || lists != c.lists || (restores > 0) != c.refused {
			t.Errorf("a watch from %q at %q (%d): got %v after %d lists and %d restores, want %d lists and refused: %t", c.from, c.now, c.status, err, lists, restores, c.lists, c.refused)
		}
	}
}
