// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestSilentIAMStallsNobody has an IAM service that accepts connections and sends nothing. Requests continue while the token is valid. A request that
// waits for a token ends with its context.
func TestSilentIAMStallsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &iam{now: time.Now(), good: map[string]bool{}}
		silent, logins := false, 0
		tokens := NewTokens("https://iam.example.com", Login{Password: func(context.Context) string { return "" }}, fn(func(r *http.Request) (*http.Response, error) {
			logins++
			if silent {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return i.RoundTrip(r)
		}), nil)
		if _, err := tokens.Token(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		silent = true
		time.Sleep(55 * time.Minute)
		begin := time.Now()
		var mu sync.Mutex
		late := 0
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // the timeout of a Ping
				defer cancel()
				if token, err := tokens.Token(ctx, ""); err != nil || token != "token-1" || ctx.Err() != nil {
					t.Errorf("while the token is good: got %q, %v after %s", token, err, time.Since(begin))
				}
				mu.Lock()
				defer mu.Unlock()
				if time.Since(begin) > 0 {
					late++
				}
			})
		}
		wg.Wait()
		if late != 1 || logins != 2 {
			t.Errorf("%d of 10 requests waited, and %d logins were tried, want one each", late, logins-1)
		}

		time.Sleep(10 * time.Minute) // the token has expired
		begin = time.Now()
		for _, patience := range []time.Duration{time.Minute, time.Second, 2 * time.Second} {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if patience < time.Minute {
					time.Sleep(time.Millisecond) // the first request requests a token
				}
				_, err := tokens.Token(ctx, "")
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("when the token has ended: got %v", err)
				}
				if took := time.Since(begin); took > min(patience, loginTimeout) {
					t.Errorf("who waits %s left after %s", patience, took)
				}
			})
		}
		wg.Wait()
	})
}
