// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
)

var (
	streamsOpen = metrics.NewGauge("virtual_kubelet_streams",
		"Exec, attach and port-forward sessions under way.", metrics.Sum)
	streamsRefused = metrics.NewCounter("virtual_kubelet_streams_refused_total",
		"Exec, attach and port-forward sessions that were refused because there were too many.")
)

// openStreams counts the open streams of all StreamLimits in the process.
var openStreams atomic.Int64

func init() { streamsOpen.Track(func() float64 { return float64(openStreams.Load()) }) }

// StreamLimits bounds the number of exec, attach and port-forward sessions under way, in total and per user. Handlers that share a
// StreamLimits share the limits. It is safe for concurrent use; nil is no limit.
//
// Behind an API server all users are one user, the API server itself, so the limit per user should be most of the total.
type StreamLimits struct {
	inAll, perUser int

	mu    sync.Mutex
	open  int            // number of sessions; guarded by mu
	users map[string]int // number of sessions by user; guarded by mu
}

// NewStreamLimits returns limits. A value of 0 or less means no limit.
func NewStreamLimits(inAll, perUser int) *StreamLimits {
	return &StreamLimits{inAll: inAll, perUser: perUser, users: map[string]int{}}
}

// Open returns the number of sessions under way.
func (l *StreamLimits) Open() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// limitsKey is the key of a request's limits in its context.
type limitsKey struct{}

// Limit returns h with its sessions counted and limited. h is a handler of HandleContainerExec, HandleContainerAttach or HandlePortForward.
// A client beyond the limit gets 429. All connections of one port-forward session count as one.
func (l *StreamLimits) Limit(h http.HandlerFunc) http.HandlerFunc {
	if l == nil {
		return h
	}
	return func(w http.ResponseWriter, req *http.Request) {
		h(w, req.WithContext(context.WithValue(req.Context(), limitsKey{}, l)))
	}
}

func limitsOf(ctx context.Context) *StreamLimits {
	l, _ := ctx.Value(limitsKey{}).(*StreamLimits)
	return l
}

// enter counts a session of a user, until leave is called. It returns an error if there are too many. The text of the error has no colon:
// clients before Kubernetes 1.36 parse a line with a colon as YAML, and show nothing.
func (l *StreamLimits) enter(user string) (leave func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.inAll > 0 && l.open >= l.inAll:
		err = fmt.Errorf("too many sessions, %d are under way; end some or raise the limit of the node", l.open)
	case l.perUser > 0 && l.users[user] >= l.perUser:
		err = fmt.Errorf("too many sessions, %d of %q are under way; end some or raise the limit of the node", l.users[user], user)
	}
	if err != nil {
		streamsRefused.Inc()
		return nil, err
	}
	l.add(user, 1)
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.add(user, -1)
	}), nil
}

// add adds n to the total and to the count of the user. The caller holds mu.
func (l *StreamLimits) add(user string, n int) {
	l.open += n
	if l.users[user] += n; l.users[user] == 0 {
		delete(l.users, user)
	}
	openStreams.Add(int64(n))
}
