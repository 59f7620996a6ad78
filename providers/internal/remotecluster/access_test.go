// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestReplacedKubeconfig renews the token in the kubeconfig, and then writes unusable files.
func TestReplacedKubeconfig(t *testing.T) {
	got := make(chan string, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Authorization") }))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig := func(server, token string) string {
		return `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: s, user: u}}], clusters: [{name: s, cluster: {insecure-skip-tls-verify: true, server: "` + server +
			`"}}], users: [{name: u, user: {token: "` + token + `"}}]}`
	}
	write(kubeconfig(server.URL, "one"))
	access, err := Access(path, "")
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(access)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	sent := func() string {
		t.Helper()
		answer, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return <-got
	}
	until := func(token string) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); sent() != "Bearer "+token; {
			if time.Now().After(end) {
				t.Fatalf("sent %q, want token %s", sent(), token)
			}
		}
	}
	if first := sent(); first != "Bearer one" {
		t.Errorf("sent %q", first)
	}
	write(kubeconfig(server.URL, "two"))
	until("two")
	for name, content := range map[string]string{
		"broken": "{", "another server": kubeconfig("https://other.example.com", "stranger"),
		"no token": kubeconfig(server.URL, ""), "no context": strings.Replace(kubeconfig(server.URL, "lost"), "current-context: c", "current-context: d", 1),
	} {
		write(content)
		for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); { // the files are checked ten times a second
			if token := sent(); token != "Bearer two" {
				t.Fatalf("%s: sent %q, want the last token that was good", name, token)
			}
		}
	}
	write(kubeconfig(server.URL, "three"))
	until("three")
}
