// SPDX-License-Identifier: Apache-2.0

package remotetest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// shortLife is the lifetime of tokens as reported to a node. An API server issues no tokens with a lifetime of
// less than ten minutes.
const shortLife = 30 * time.Second

// shortTokens returns a kubeconfig for a proxy to the API server. The proxy reports a short lifetime of tokens,
// so the node renews them. The tokens themselves are real.
func shortTokens(t *testing.T, kubeconfig string) string {
	t.Helper()
	access, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(access)
	if err != nil {
		t.Fatal(err)
	}
	host, err := url.Parse(access.Host)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(host)
			if strings.HasSuffix(r.Out.URL.Path, "/token") {
				r.Out.Header.Set("Accept", "application/json")
				r.Out.Header.Del("Accept-Encoding")
			}
		},
		ModifyResponse: func(answer *http.Response) error {
			if answer.StatusCode != http.StatusCreated || !strings.HasSuffix(answer.Request.URL.Path, "/token") {
				return nil
			}
			return shortenToken(answer)
		},
	})
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections) // first: watches are open
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\nclusters: [{name: c, cluster: {server: \"" + server.URL + "\"}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// shortenToken shortens the reported lifetime of a token.
func shortenToken(answer *http.Response) error {
	var token authenticationv1.TokenRequest
	if err := json.NewDecoder(answer.Body).Decode(&token); err != nil {
		return err
	}
	seconds := int64(shortLife.Seconds())
	token.Spec.ExpirationSeconds, token.Status.ExpirationTimestamp = &seconds, metav1.NewTime(time.Now().Add(shortLife))
	data, err := json.Marshal(token)
	if err != nil {
		return err
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	answer.Header.Set("Content-Length", strconv.Itoa(len(data)))
	return nil
}
