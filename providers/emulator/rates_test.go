// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// TestRatesAreKept checks that all operations of a rate share a burst and its refill over time, and that a
// refused request uses up nothing.
func TestRatesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := 0
		r := NewRates(func(r *http.Request) string { return r.URL.Path[1:] }, []Rate{
			{Operations: []string{"Run", "Stop"}, Burst: 4, PerSecond: 2}, {Operations: []string{"Run"}, Burst: 3, PerSecond: 1},
		}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { done++ }))
		ask := func(operation string) int {
			w := httptest.NewRecorder()
			r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/"+operation, nil))
			return w.Code
		}
		for i, step := range []struct {
			operation string
			after     time.Duration
			want      int
		}{
			{"Run", 0, 200}, {"Run", 0, 200}, {"Run", 0, 200}, {"Run", 0, 429}, // its own burst
			{"Stop", 0, 200}, {"Stop", 0, 429}, // the shared rate is used up
			{"List", 0, 200},          // List has no rate
			{"Run", time.Second, 200}, // one of each came back, and two for both
			{"Run", 0, 429},           // Run's own rate is empty
			{"Stop", 0, 200},          // and the other rate lost nothing
			{"Stop", 0, 429},          // the shared rate is empty now
			{"Stop", time.Hour, 200},  // full, but not above the burst
			{"Stop", 0, 200}, {"Stop", 0, 200}, {"Stop", 0, 200}, {"Stop", 0, 429},
		} {
			time.Sleep(step.after)
			if got := ask(step.operation); got != step.want {
				t.Errorf("step %d, %s: %d, want %d", i, step.operation, got, step.want)
			}
		}
		if done != 11 {
			t.Errorf("%d had an effect, want 11", done)
		}
	})
}
