// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTransportVerifiesByTheFile: the transport trusts the server of the CA file, and no other server.
func TestTransportVerifiesByTheFile(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{file: "", "": "x509: "} {
		through, err := Transport(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := (&http.Client{Transport: through}).Do(r)
		if answer != nil {
			answer.Body.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("by the file %q: got %v, want %q", path, err, want)
		}
	}
	if err := os.WriteFile(file, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{file: "no certificate", file + "-none": "no such file"} {
		if _, err := Transport(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the file %s: got %v, want %q", path, err, want)
		}
	}
}

// TestFilesOfTLSAreReadForEachConnection checks that a replaced file counts, in PEM or DER, and that a missing one is
// named.
func TestFilesOfTLSAreReadForEachConnection(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	files := TLSFiles{CAFile: filepath.Join(t.TempDir(), "ca.pem")}
	for _, c := range []struct {
		content []byte
		want    string
	}{
		{nil, "caFile: open "}, {[]byte("nothing"), "caFile: "}, {server.Certificate().Raw, ""},
		{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), ""},
	} {
		if c.content != nil {
			if err := os.WriteFile(files.CAFile, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		conn, err := files.DialTLS(t.Context(), "tcp", server.Listener.Addr().String())
		if err == nil {
			conn.Close()
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.20q: got %v, want %q", c.content, err, c.want)
		}
	}
	files.CertFile, files.KeyFile = files.CAFile, files.CAFile
	if _, err := files.Config(); err == nil || !strings.HasPrefix(err.Error(), "certFile and keyFile: ") {
		t.Errorf("a certificate without its key: got %v", err)
	}
}

// TestRetryAfter checks that only a number of seconds gives a delay.
func TestRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "7": 7 * time.Second, "-1": 0, "Sun, 29 Nov 2026 03:00:00 GMT": 0} {
		if got := RetryAfter(http.Header{"Retry-After": {text}}); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
