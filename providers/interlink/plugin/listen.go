// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// listen opens the listener for the API server: a socket of this user, or a port of this machine. Every user of
// the machine can reach a port. Therefore listen refuses a port unless requests need a token, or open permits
// every user to run programs here.
func listen(ctx context.Context, where string, token, open bool) (net.Listener, error) {
	u, err := url.Parse(where)
	if err != nil {
		return nil, errdefs.InvalidInputf("interlink-plugin: listen on %q: want unix:///path or http://127.0.0.1:port", where)
	}
	var c net.ListenConfig
	switch {
	case u.Scheme == "http" && net.ParseIP(u.Hostname()) != nil && net.ParseIP(u.Hostname()).IsLoopback():
		if !token && !open {
			return nil, errdefs.InvalidInputf("interlink-plugin: listen on %q: every user of this machine could run programs with the rights of this one: "+
				"want unix:///path, or a token by --token-file, or --open-to-this-machine", where)
		}
		return c.Listen(ctx, "tcp", u.Host)
	case u.Scheme == "http":
		return nil, errdefs.InvalidInputf("interlink-plugin: listen on %q: whoever reaches it runs programs here: want unix:///path or http://127.0.0.1:port", where)
	case u.Scheme != "unix" || u.Path == "":
		return nil, errdefs.InvalidInputf("interlink-plugin: listen on %q: want unix:///path or http://127.0.0.1:port", where)
	}
	if conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", u.Path); err == nil {
		conn.Close()
		return nil, fmt.Errorf("interlink-plugin: another process listens on %s", u.Path)
	}
	if there, err := os.Lstat(u.Path); err == nil && there.Mode().Type() != os.ModeSocket {
		return nil, errdefs.InvalidInputf("interlink-plugin: listen on %q: the path exists and is not a socket; remove it or choose another path", where)
	}
	if err := os.Remove(u.Path); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("interlink-plugin: %w", err)
	}
	// Other users must not connect between listen and chmod: the socket is made under another name, in a private
	// directory.
	dir, err := os.MkdirTemp(filepath.Dir(u.Path), ".interlink-")
	if err != nil {
		return nil, fmt.Errorf("interlink-plugin: %w", err)
	}
	defer os.RemoveAll(dir)
	l, err := c.Listen(ctx, "unix", filepath.Join(dir, "s"))
	if err != nil {
		return nil, fmt.Errorf("interlink-plugin: %w", err)
	}
	if unix, ok := l.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false)
	}
	if err = os.Chmod(filepath.Join(dir, "s"), 0o600); err == nil {
		err = os.Rename(filepath.Join(dir, "s"), u.Path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("interlink-plugin: %w", err), l.Close())
	}
	return l, nil
}

// shortestToken is the minimum length of a token, in bytes. A shorter token could be guessed.
const shortestToken = 16

// readToken returns the token in a file. The token follows changes of the file.
func readToken(ctx context.Context, file string) (token config.Secret, err error) {
	if err := private(file); err != nil {
		return token, err
	}
	where, err := json.Marshal(map[string]string{"file": file})
	if err == nil {
		err = token.UnmarshalJSON(where)
	}
	if err != nil {
		return token, fmt.Errorf("interlink-plugin: token file: %w", err)
	}
	if len(token.Value(ctx)) < shortestToken {
		return token, errdefs.InvalidInputf("interlink-plugin: token file %s: want %d letters or more", file, shortestToken)
	}
	return token, nil
}

// private returns an error if other users may read the file with the token, or if it cannot be read.
func private(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("interlink-plugin: token file: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return errdefs.InvalidInputf("interlink-plugin: token file %s: others may read it, as its mode is %v: chmod 600 it", file, info.Mode().Perm())
	}
	return nil
}

// whilePrivate passes on requests while no other user may read the file with the token. The file may be replaced
// at any time.
func whilePrivate(file string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := private(file); errdefs.IsInvalidInput(err) { // a missing file may come back
			log.G(r.Context()).WithError(err).Warn("Refused: a request, as the token is no secret")
			http.Error(w, "the token of the plugin is no secret: its log says more", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// withToken passes on the requests with the right token and refuses all others. The token is a bearer token or
// the password of basic authentication. An API server sends the password if the URL of its sidecar contains it.
func withToken(token config.Secret, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := token.Value(r.Context())
		_, given, basic := r.BasicAuth()
		if !basic {
			given, _ = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		}
		a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want)) // digests have the same length, whatever the request has
		if len(want) < shortestToken || subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
			log.G(r.Context()).WithField("from", r.RemoteAddr).Warn("Refused: a request without the token of the plugin")
			http.Error(w, "the plugin wants its token: set SidecarURL of the API server to http://plugin:TOKEN@127.0.0.1", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
