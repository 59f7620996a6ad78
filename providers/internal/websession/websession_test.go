// SPDX-License-Identifier: Apache-2.0

package websession

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// TestNoErrorHasTheAddress checks addresses that are refused before a connection, and servers that refuse sessions.
func TestNoErrorHasTheAddress(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for address, early := range map[string]bool{
		"http://example.com/?token=key": true, "ws://example.com/?token=key": true, "wss:///?token=key": true, "\x00token=key": true,
		strings.Replace(server.URL, "http", "ws", 1) + "/?token=key": false, "wss://127.0.0.1:1/?token=key": false, "wss://127.0.0.1:port/?token=key": true,
	} {
		_, err := Open(t.Context(), address, Options{})
		if err == nil || errors.Is(err, ErrAddress) != early || strings.Contains(err.Error(), "key") {
			t.Errorf("%q: got %v, without a connection: want %t", address, err, early)
		}
	}
}

// TestSessionEndsWithItsContext checks a session with a server that only listens.
func TestSessionEndsWithItsContext(t *testing.T) {
	said := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{Subprotocols: []string{"binary"}}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		_, data, _ := conn.ReadMessage()
		said <- conn.Subprotocol() + " " + string(data)
		_, _, _ = conn.ReadMessage()
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Open(ctx, strings.Replace(server.URL, "http", "ws", 1), Options{Protocols: []string{"binary"}})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Write([]byte("typed")); n != 5 || err != nil {
		t.Errorf("wrote %d bytes, %v", n, err)
	}
	if got := <-said; got != "binary typed" {
		t.Errorf("the server got %q", got)
	}
	cancel()
	if _, _, err := s.ReadMessage(); err == nil {
		t.Error("the session goes on")
	}
}
