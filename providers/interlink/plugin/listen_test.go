// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// TestListen checks that only safe addresses are accepted, because every caller of the plugin can run programs
// here.
func TestListen(t *testing.T) {
	for _, where := range []string{"http://0.0.0.0:0", "http://192.0.2.1:4000", "http://host:4000", "tcp://127.0.0.1:1", "unix://", "", "127.0.0.1:4000"} {
		if l, err := listen(t.Context(), where, true, true); err == nil {
			l.Close()
			t.Errorf("%q was listened on", where)
		} else if !errdefs.IsInvalidInput(err) {
			t.Errorf("%q: %v", where, err)
		}
	}
	dir, err := os.MkdirTemp("", "il") //nolint:usetesting // the path of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	url := "unix://" + filepath.Join(dir, "s")
	l, err := listen(t.Context(), url, false, false)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "s")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	if second, err := listen(t.Context(), url, false, false); err == nil {
		second.Close()
		t.Error("two listen on one socket")
	}
	l.Close()
	again, err := listen(t.Context(), url, false, false)
	if err != nil {
		t.Fatalf("a socket that was left: %v", err)
	}
	var _ net.Listener = again
	again.Close()
}

// TestPortOfThisMachine checks that a TCP port is opened only with a token, or if the user opens it to every
// process.
func TestPortOfThisMachine(t *testing.T) {
	const where = "http://127.0.0.1:0"
	for _, tt := range []struct{ token, open, listens bool }{{false, false, false}, {true, false, true}, {false, true, true}} {
		l, err := listen(t.Context(), where, tt.token, tt.open)
		if err == nil {
			l.Close()
		}
		if (err == nil) != tt.listens {
			t.Errorf("%+v: %v", tt, err)
		}
		if err != nil && (!errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "--token-file")) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// TestToken checks that a request without the current token does nothing.
func TestToken(t *testing.T) {
	const first, second = "first-token-of-the-plugin", "second-and-longer-token-of-the-plugin"
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, spoil := range map[string]func(){
		"absent": func() {}, "empty": func() { write("\n", 0o600) }, "of others": func() { write(first, 0o640) }, "short": func() { write("0123", 0o600) },
	} {
		spoil()
		if _, err := readToken(t.Context(), file); err == nil || strings.Contains(err.Error(), first) {
			t.Errorf("%s: %v", name, err)
		}
	}
	write(first+"\n", 0o600)
	token, err := readToken(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	done := 0
	code := func(h http.Handler, set func(*http.Request)) int {
		r, w := httptest.NewRequest(http.MethodPost, "/create", nil), httptest.NewRecorder()
		set(r)
		h.ServeHTTP(w, r)
		if body, _ := io.ReadAll(w.Body); strings.Contains(string(body), first) {
			t.Errorf("the answer has the token: %s", body)
		}
		return w.Code
	}
	inner := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { done++ })
	h := withToken(token, inner)
	bearer := func(text string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+text) }
	}
	for name, set := range map[string]func(*http.Request){
		"nothing": func(*http.Request) {}, "no token": bearer(""), "another": bearer(second), "a part": bearer(first[:len(first)-1]),
		"as a name": func(r *http.Request) { r.SetBasicAuth(first, "") },
	} {
		if got := code(h, set); got != http.StatusUnauthorized || done != 0 {
			t.Errorf("%s: %d, and %d requests were done", name, got, done)
		}
	}
	if got := code(h, bearer(first)); got != http.StatusOK || done != 1 {
		t.Errorf("a bearer token: %d", got)
	}
	if got := code(h, func(r *http.Request) { r.SetBasicAuth("plugin", first) }); got != http.StatusOK || done != 2 {
		t.Errorf("a password: %d", got)
	}
	write(second, 0o600)
	until(t, func() bool { return code(h, bearer(second)) == http.StatusOK })
	if got := code(h, bearer(first)); got != http.StatusUnauthorized {
		t.Errorf("the token of before: %d", got)
	}
	if got := code(withToken(config.Literal(""), inner), bearer("")); got != http.StatusUnauthorized {
		t.Errorf("no token at all: %d", got)
	}
}

// TestFileInThePlaceOfTheSocket checks that a regular file in the place of the socket stays.
func TestFileInThePlaceOfTheSocket(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes")
	if err := os.WriteFile(file, []byte("notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := listen(t.Context(), "unix://"+file, false, false); err == nil {
		l.Close()
		t.Error("it was replaced")
	}
	if left, err := os.ReadFile(file); err != nil || string(left) != "notes" {
		t.Errorf("left: %q, %v", left, err)
	}
}

// TestTokenThatOthersMayRead checks that a token stops working while its file is readable for other users.
func TestTokenThatOthersMayRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("a token of sixteen"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := whilePrivate(file, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for mode, want := range map[os.FileMode]int{0o600: http.StatusOK, 0o644: http.StatusUnauthorized} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/status", nil)); w.Code != want {
			t.Errorf("%v: %d, want %d", mode, w.Code, want)
		}
	}
}
