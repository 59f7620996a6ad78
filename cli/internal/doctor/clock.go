// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// maxSkew is the greatest allowed difference of clocks: node heartbeats and tokens tolerate only seconds.
const maxSkew = 5 * time.Second

// clock compares the local clock with the clock of the API server, by the Date header of responses.
type clock struct {
	mu    sync.Mutex
	known bool          // guarded by mu
	ahead time.Duration // guarded by mu; the lower bound of the local clock's lead; negative if the local clock is behind
}

// watch returns rt with a wrapper that compares the clocks for each response.
func (c *clock) watch(rt http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		sent := time.Now()
		resp, err := rt.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			c.saw(sent, date, time.Now())
		}
		return resp, nil
	})
}

// saw records a response with this Date header, which has a resolution of one second.
func (c *clock) saw(sent, date, received time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = true
	// The response was written between sent and received, and between date and date + 1 s.
	switch least, most := sent.Sub(date.Add(time.Second)), received.Sub(date); {
	case least > 0:
		c.ahead = least
	case most < 0:
		c.ahead = most
	default:
		c.ahead = 0
	}
}

// now returns the time of the API server.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(-c.ahead)
}

func checkClock(_ context.Context, e *exam) {
	e.clock.mu.Lock()
	known, ahead := e.clock.known, e.clock.ahead
	e.clock.mu.Unlock()
	side := "ahead of"
	if ahead < 0 {
		side = "behind"
	}
	switch {
	case !known:
		e.skip("the API server's answers bear no date")
	case ahead.Abs() > maxSkew:
		e.warn("let both machines follow a time server (chronyc tracking, timedatectl): tokens and certificates are refused by the wrong time",
			"the clock of this machine is %s %s the API server's", ahead.Abs().Round(time.Second), side)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
