// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
)

// TestRefusedClientHoldsNoConnection: a refused client promises a body and never sends it. The server does not
// wait for the body, because no handler reads it.
func TestRefusedClientHoldsNoConnection(t *testing.T) {
	ca := testpki.New(t)
	reviews := newReviews(t)
	webhook, err := WebhookAuth(reviews.client, "n1", once)
	if err != nil {
		t.Fatal(err)
	}
	for name, handler := range map[string]http.Handler{"added": hello, "WithAuth": WithAuth(webhook, hello)} {
		cfg := serverConfig(t, ca)
		cfg.Handler = handler
		s := serve(t, cfg, reviews, &lineLogger{})
		for _, body := range []string{"Content-Length: 1000", "Transfer-Encoding: chunked"} {
			conn, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), ca.ClientConfig(t, nil, ""))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, "POST /pods HTTP/1.1\r\nHost: n1\r\n"+body+"\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(conn)
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Errorf("%s, %s: no answer: %v", name, body, err)
				continue
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s, %s: got %d, want 401", name, body, resp.StatusCode)
			}
			if _, err := r.ReadByte(); err != io.EOF {
				t.Errorf("%s, %s: the connection stays open: %v", name, body, err)
			}
		}
		s.end(t)
	}
}

// TestSecurityA2OptionsForTheServerNeedCredentials: OPTIONS * needs credentials. By default, net/http answers
// this request before any handler.
func TestSecurityA2OptionsForTheServerNeedCredentials(t *testing.T) {
	ca := testpki.New(t)
	cfg := serverConfig(t, ca)
	cfg.Handler = hello
	s := serve(t, cfg, newReviews(t), &lineLogger{})
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), ca.ClientConfig(t, nil, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "OPTIONS * HTTP/1.1\r\nHost: n1\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("got %d, want 401", resp.StatusCode)
	}
}
