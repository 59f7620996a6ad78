// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"crypto/rand"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
)

// maxTokenSeconds is the longest validity of a token of the metadata service.
const maxTokenSeconds = 21600

// newMetadata returns the metadata service of an instance, in its second version: each page needs a token. Nobody may change the pages.
func newMetadata(pages map[string][]byte) http.Handler {
	var mu sync.Mutex
	var tokens []string // guarded by mu
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /latest/api/token", func(w http.ResponseWriter, r *http.Request) {
		seconds, err := strconv.Atoi(r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds"))
		if err != nil || seconds < 1 || seconds > maxTokenSeconds {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		tokens = append(tokens, rand.Text())
		_, _ = io.WriteString(w, tokens[len(tokens)-1])
	})
	mux.HandleFunc("GET /latest/{page...}", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		page, is := pages[r.PathValue("page")]
		switch {
		case !slices.Contains(tokens, r.Header.Get("X-Aws-Ec2-Metadata-Token")):
			w.WriteHeader(http.StatusUnauthorized)
		case !is:
			w.WriteHeader(http.StatusNotFound)
		default:
			_, _ = w.Write(page)
		}
	})
	return mux
}
