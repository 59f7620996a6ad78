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
