// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestRequestsAreProtobuf checks that a pod is sent and read as protobuf, unless the access names another
// content type, for servers with another API.
func TestRequestsAreProtobuf(t *testing.T) {
	for asked, want := range map[string]string{"": "application/vnd.kubernetes.protobuf", "application/json": "application/json"} {
		var sent, wanted string
		c := asking(t, asked, func(r *http.Request) (*http.Response, error) {
			sent, wanted = r.Header.Get("Content-Type"), r.Header.Get("Accept")
			return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{"Content-Type": {sent}}, Body: r.Body, Request: r}, nil
		})
		made, err := c.writer.create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "r", Name: "web"}})
		if err != nil || made.Name != "web" {
			t.Errorf("%q: made %v (%v)", asked, made, err)
		}
		if first, _, _ := strings.Cut(wanted, ","); sent != want || first != want {
			t.Errorf("%q: sent %q, and asked for %q, want %q", asked, sent, wanted, want)
		}
	}
}

// TestMetricsAreReadAsJSON checks that the client requests JSON from the metrics API, which would send protobuf to a client that
// accepts it. The client has no protobuf types for metrics.
func TestMetricsAreReadAsJSON(t *testing.T) {
	c := asking(t, "", func(r *http.Request) (*http.Response, error) {
		text := "protobuf"
		if r.Header.Get("Accept") == "application/json" {
			text = `{"items": [{"metadata": {"namespace": "r", "name": "web"}, "containers": [{"name": "main", "usage": {"cpu": "250m", "memory": "3Mi"}}]}]}`
		}
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader([]byte(text))), Request: r}, nil
	})
	got := c.podUsage(t.Context())["r/web/main"]
	if got.cpu.MilliValue() != 250 || got.memory.Value() != 3<<20 {
		t.Errorf("it uses %s, want 250 m of CPU and 3 MiB", fmt.Sprint(got.cpu.String(), " ", got.memory.String()))
	}
}

// asking returns a cluster whose access has a content type, and whose requests the given function answers.
func asking(t *testing.T, contentType string, answer roundTripper) *Cluster {
	t.Helper()
	c, err := New(Config{Home: testHome, REST: &rest.Config{Host: "http://remote.test", Transport: answer, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: contentType}}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
