// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.opentelemetry.io/otel"

	"github.com/virtual-kubelet/virtual-kubelet/trace"
)

func TestTracesAreSent(t *testing.T) {
	var mu sync.Mutex
	var got bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var body io.Reader = req.Body
		if req.Header.Get("Content-Encoding") == "gzip" {
			unzipped, err := gzip.NewReader(req.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = unzipped
		}
		got.WriteString(req.URL.Path + "\n")
		_, _ = got.ReadFrom(body)
	}))
	defer collector.Close()
	provider, tracer := otel.GetTracerProvider(), trace.T
	defer func() {
		otel.SetTracerProvider(provider)
		trace.T = tracer
	}()

	r, err := resolveWith(t, []string{"--disable-kubelet-api", "--nodename=n1", "--trace-endpoint=" + collector.URL, "--trace-tag=team=blue", "--trace-service-name=vk-test"}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	end, err := r.startTracing(t.Context(), "empty", "v9")
	if err != nil {
		t.Fatal(err)
	}
	_, span := trace.StartSpan(t.Context(), "a-span")
	span.End()
	if err := end(t.Context()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"/v1/traces\n", "a-span", "vk-test", "team", "blue", "nodeName", "n1", "empty", "v9"} {
		if !bytes.Contains(got.Bytes(), []byte(want)) {
			t.Errorf("%q did not reach the collector: %q", want, got.Bytes())
		}
	}
}

func TestEndpoints(t *testing.T) {
	for endpoint, ok := range map[string]bool{
		"http://h:4318": true, "https://h/path": true, "grpc://h:4317": true, "grpcs://h:4317": true,
		"h:4317": false, "ftp://h": false, "http://": false, "%": false,
	} {
		exporter, err := newExporter(t.Context(), endpoint)
		if !ok {
			if err == nil {
				t.Errorf("%s is no error", endpoint)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", endpoint, err)
			continue
		}
		if err := exporter.Shutdown(t.Context()); err != nil {
			t.Errorf("%s: shutdown: %v", endpoint, err)
		}
	}
}

// TestTracesThatFailAreInTheLog holds that OpenTelemetry's errors are logged in the format of the other lines.
func TestTracesThatFailAreInTheLog(t *testing.T) {
	provider, tracer := otel.GetTracerProvider(), trace.T
	defer func() {
		otel.SetTracerProvider(provider)
		trace.T = tracer
	}()
	r, err := resolveWith(t, []string{"--disable-kubelet-api", "--log-format=json", "--trace-endpoint=http://127.0.0.1:1"}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.startLogging(&out); err != nil {
		t.Fatal(err)
	}
	end, err := r.startTracing(t.Context(), "empty", "v9")
	if err != nil {
		t.Fatal(err)
	}
	otel.Handle(errors.New("nobody listens"))
	_ = end(t.Context()) // no span was started
	var line map[string]string
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line["level"] != "WARN" || line["err"] != "nobody listens" {
		t.Errorf("got %s, %v", &out, err)
	}
}
