// SPDX-License-Identifier: Apache-2.0

package azblobs

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// TestOnlyMissingBlobIsNotFound checks each answer with the status 404: of the service about a blob, a container and an
// account, and of a proxy, which has no code.
func TestOnlyMissingBlobIsNotFound(t *testing.T) {
	for code, want := range map[string]bool{"BlobNotFound": true, "ContainerNotFound": false, "ResourceNotFound": false, "": false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.Header().Set("Content-Type", "multipart/mixed; boundary=b")
				w.WriteHeader(http.StatusAccepted)
				_, _ = w.Write([]byte("--b\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 404 Not Found\r\nx-ms-error-code: " + code + "\r\nContent-Length: 0\r\n\r\n--b--\r\n"))
				return
			}
			w.Header().Set("x-ms-error-code", code)
			w.WriteHeader(http.StatusNotFound)
		}))
		c := &Container{URL: server.URL, HTTP: server.Client(), Token: func(context.Context) (string, error) { return "t", nil }}
		_, err := c.Get(t.Context(), "a", "", 0)
		if errdefs.IsNotFound(err) != want {
			t.Errorf("%q: a read says %v", code, err)
		}
		for what, err := range map[string]error{"delete": c.Delete(t.Context(), "a"), "delete of many": c.DeleteBatch(t.Context(), []string{"a"})} {
			if (err == nil) != want {
				t.Errorf("%q: a %s says %v", code, what, err)
			}
		}
		server.Close()
	}
}
