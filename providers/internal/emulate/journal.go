// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// journal records the requests to a service, and the events of its groups, one line each, with the time in
// seconds.
//
//	1700000000.000001 request CreateContainerGroup 200
//	1700000000.000001 request CreateContainerGroup refused
//	1700000000.000002 made eci-1 pod-1
//	1700000000.000003 began eci-1
//	1700000000.000004 left sessions 0
//	1700000000.000005 left all 0
type journal struct {
	mu sync.Mutex
	to io.Writer // guarded by mu
}

func (j *journal) write(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	_, _ = fmt.Fprintf(j.to, "%d.%06d "+format+"\n", append([]any{now.Unix(), now.Nanosecond() / 1000}, args...)...) // a failed write leaves the reader waiting
}

// recordLeft records the number of leftovers of each kind, and then of all kinds.
func (j *journal) recordLeft(there map[string][]string) {
	all := 0
	for _, kind := range slices.Sorted(maps.Keys(there)) {
		j.write("left %s %d", strings.ReplaceAll(kind, " ", "-"), len(there[kind]))
		all += len(there[kind])
	}
	j.write("left all %d", all)
}

// recordRequests records the requests to a service, and the groups that they make.
func (j *journal) recordRequests(s service, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := &heard{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(answer, r)
		if answer.refused {
			j.write("request %s refused", s.operation(r))
			return
		}
		j.write("request %s %d", s.operation(r), answer.status)
		if id, pod := s.made(r, body, answer.body.Bytes()); id != "" && answer.status < http.StatusBadRequest {
			j.write("made %s %s", id, pod)
		}
	})
}

// markRefused returns the handler that answers requests above a quota instead of the service.
func markRefused(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if h, ok := w.(*heard); ok {
			h.refused = true
		}
		next(w, r)
	}
}

// heard is a response writer that keeps the response.
type heard struct {
	http.ResponseWriter
	status  int
	body    bytes.Buffer
	refused bool // a quota refused the request
}

// WriteHeader implements http.ResponseWriter.
func (h *heard) WriteHeader(status int) {
	h.status = status
	h.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (h *heard) Write(data []byte) (int, error) {
	h.body.Write(data)
	return h.ResponseWriter.Write(data)
}
