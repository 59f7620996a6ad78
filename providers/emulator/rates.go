// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// Rate limits the requests of operations, all of them together: Burst at once, and PerSecond in the long run.
type Rate struct {
	Operations       []string
	Burst, PerSecond float64
}

// Rates refuse requests above the quotas of a service.
type Rates struct {
	operation func(*http.Request) string
	refuse    http.HandlerFunc
	next      http.Handler

	mu      sync.Mutex
	buckets []*bucket // guarded by mu
}

// bucket is the rest of a rate.
type bucket struct {
	rate Rate
	have float64
	at   time.Time
}

// NewRates returns a handler before next, which answers with refuse instead if a rate is exhausted. A request must be within each rate of
// its operation.
func NewRates(operation func(*http.Request) string, rates []Rate, refuse http.HandlerFunc, next http.Handler) *Rates {
	r := &Rates{operation: operation, refuse: refuse, next: next}
	for _, rate := range rates {
		r.buckets = append(r.buckets, &bucket{rate: rate, have: rate.Burst, at: time.Now()})
	}
	return r
}

// ServeHTTP implements http.Handler.
func (r *Rates) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if r.spendRequest(r.operation(request)) {
		r.next.ServeHTTP(w, request)
		return
	}
	r.refuse(w, request)
}

// spendRequest spends a request from each rate of its operation, if all of them allow it.
func (r *Rates) spendRequest(operation string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, room := time.Now(), true
	var of []*bucket
	for _, b := range r.buckets {
		if slices.Contains(b.rate.Operations, operation) {
			b.have = min(b.rate.Burst, b.have+b.rate.PerSecond*now.Sub(b.at).Seconds())
			b.at = now
			room = room && b.have >= 1
			of = append(of, b)
		}
	}
	for _, b := range of {
		if room {
			b.have--
		}
	}
	return room
}
