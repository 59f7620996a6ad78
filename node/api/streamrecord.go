// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/streaming/pkg/httpstream/wsstream"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// The verbs in records are the kubelet's names for the routes.
const (
	verbExec        = "exec"
	verbAttach      = "attach"
	verbPortForward = "portForward"
)

// streamRecord is logged as one line at the end of a streaming request: the caller, the action, the container, the duration, and the
// outcome. It has no content of the streams: no command, no data, no text of an error.
type streamRecord struct {
	verb     string
	target   target
	caller   Caller
	protocol string
	begun    time.Time
	in, out  atomic.Int64 // bytes on the connection since its upgrade
	idle     time.Duration

	last    atomic.Int64 // time of the last transfer, relative to begun
	goodbye atomic.Bool  // the client announced the end; the library then closes the connection
	silent  atomic.Bool  // the library reset streams after the idle timeout

	mu      sync.Mutex
	outcome string // guarded by mu; of the first failed call of the provider, else empty
	exit    int    // guarded by mu; valid if outcome is outcomeExit
	calls   int    // guarded by mu; calls of the provider that have ended
}

// The outcomes of a stream.
const (
	outcomeDone       = "completed"
	outcomeExit       = "exited"         // with the field exitCode
	outcomeLeft       = "client left"    // before the end
	outcomeTooMany    = "too many"       // refused, see StreamLimits
	outcomeRefused    = "refused"        // the request is impossible
	outcomeUnused     = "no streams"     // the client created none in time, or its upgrade was refused
	outcomeOdd        = "protocol error" // protocol error of the client
	outcomeStopped    = "node stops"
	outcomeIdle       = "idle"
	outcomePanic      = "provider panicked"
	outcomeError      = "error" // error of the provider
	outcomeErrorKinds = "error: "
)

const (
	protocolSPDY      = "SPDY"
	protocolTunnel    = "SPDY in WebSocket"
	protocolWebSocket = "WebSocket"
)

func newStreamRecord(req *http.Request, verb string, t target, idle time.Duration) *streamRecord {
	r := &streamRecord{verb: verb, target: t, idle: idle, protocol: protocolSPDY, begun: time.Now()}
	r.caller, _ = CallerFrom(req.Context())
	switch {
	case wsstream.IsWebSocketRequestWithTunnelingProtocol(req):
		r.protocol = protocolTunnel
	case wsstream.IsWebSocketRequest(req):
		r.protocol = protocolWebSocket
	}
	if r.target.UID == "" {
		r.target.UID = podUIDFrom(req.Context())
	}
	return r
}

func (r *streamRecord) saidGoodbye() { r.goodbye.Store(true) }
func (r *streamRecord) active()      { r.last.Store(int64(time.Since(r.begun))) }

// quiet returns the time since the last transfer.
func (r *streamRecord) quiet() time.Duration {
	return time.Since(r.begun) - time.Duration(r.last.Load())
}

// resetStream records that the library resets a stream. After the idle timeout, the library first resets the streams and then closes the
// connection; the client may close its side in between.
func (r *streamRecord) resetStream() {
	if r.idle > 0 && r.quiet() >= r.idle {
		r.silent.Store(true)
	}
}

// called records the outcome of a call of the provider. ctx is the context of the call.
func (r *streamRecord) called(ctx context.Context, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if r.outcome != "" {
		return
	}
	var exit utilexec.ExitError
	switch {
	case errors.As(err, &exit) && exit.Exited():
		r.outcome, r.exit = outcomeExit, exit.ExitStatus()
	case errors.Is(err, errPanic):
		r.outcome = outcomePanic
	case r.verb == verbPortForward && (err == nil || ctx.Err() != nil): // close records the outcome of the session
	case ctx.Err() != nil:
		r.outcome = r.ending(ctx)
	case err == nil:
		r.outcome = outcomeDone
	case errdefs.IsNotFound(err):
		r.outcome = outcomeErrorKinds + "not found"
	case errdefs.IsInvalidInput(err):
		r.outcome = outcomeErrorKinds + "invalid input"
	default:
		r.outcome = outcomeError
	}
}

// lost records that the connection ended before the handler could take it over, and returns the error of the
// request.
func (r *streamRecord) lost(ctx context.Context, why error) error {
	if errors.Is(why, http.ErrNotSupported) { // a wrapper of the ResponseWriter does not support it
		return why
	}
	log.G(ctx).WithError(why).Debug("the connection ended before its upgrade")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outcome = outcomeLeft; errors.Is(why, net.ErrClosed) {
		r.outcome = r.ending(ctx)
	}
	return errCut
}

// refuse logs the line of a stream that did not begin.
func (r *streamRecord) refuse(ctx context.Context, outcome string) {
	r.mu.Lock()
	r.outcome = outcome
	r.mu.Unlock()
	r.write(ctx)
}

// close logs the line. ctx is the context of the connection; it has not ended if the session ended by itself.
func (r *streamRecord) close(ctx context.Context) {
	r.mu.Lock()
	if r.outcome == "" {
		r.outcome = r.ending(ctx)
	}
	r.mu.Unlock()
	r.write(ctx)
}

// ending returns the outcome of a session without a failed call. The caller holds mu.
func (r *streamRecord) ending(ctx context.Context) string {
	cause := context.Cause(ctx)
	switch {
	case isRefusal(cause):
		return outcomeOdd
	case r.silent.Load(), errors.Is(cause, os.ErrDeadlineExceeded),
		errors.Is(cause, net.ErrClosed) && r.protocol != protocolWebSocket && !r.goodbye.Load(): // the library closed the connection
		return outcomeIdle
	case clientLeft(ctx) && (r.verb != verbPortForward || r.calls == 0): // a port-forward session always ends when the client leaves
		return outcomeLeft
	case clientLeft(ctx):
		return outcomeDone
	case cause != nil:
		return outcomeStopped
	case r.calls == 0:
		return outcomeUnused
	}
	return outcomeDone
}

func (r *streamRecord) write(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fields := log.Fields{
		"user": r.caller.Name, "groups": r.caller.Groups,
		"verb": r.verb, "protocol": r.protocol,
		"pod": r.target.Namespace + "/" + r.target.Pod, "podUID": r.target.UID,
		"duration": time.Since(r.begun).String(),
		"bytesIn":  r.in.Load(), "bytesOut": r.out.Load(),
		"outcome": r.outcome,
	}
	if r.target.Container != "" {
		fields["container"] = r.target.Container
	}
	switch {
	case r.outcome == outcomeExit:
		fields["exitCode"] = r.exit
	case r.outcome == outcomeDone && r.verb != verbPortForward:
		fields["exitCode"] = 0
	case r.verb == verbPortForward:
		fields["connections"] = r.calls
	}
	log.G(ctx).WithFields(fields).Info("Stream has ended")
}
