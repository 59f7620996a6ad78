// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// shortestToken is the minimum length of a token, in bytes. A shorter token could be guessed.
const shortestToken = 16

// readToken returns the token in a file, as it is at any time.
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
