// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

const (
	// defaultStreamIdleTimeout is a kubelet's default.
	defaultStreamIdleTimeout = 4 * time.Hour
	// defaultStreamCreationTimeout is a kubelet's default.
	defaultStreamCreationTimeout = 30 * time.Second
)

// streamTimeouts are the time limits of one streaming connection.
type streamTimeouts struct {
	idle     time.Duration
	creation time.Duration
}

func makeStreamTimeouts(idle, creation time.Duration) streamTimeouts {
	t := streamTimeouts{idle: idle, creation: creation}
	if t.idle <= 0 {
		t.idle = defaultStreamIdleTimeout
	}
	if t.creation <= 0 {
		t.creation = defaultStreamCreationTimeout
	}
	return t
}

// upgrade describes a streaming request: its target and its connection settings.
type upgrade struct {
	verb     string
	target   target
	timeouts streamTimeouts
	// legacyProtocol is the protocol for a SPDY client that offers none.
	legacyProtocol string
	// frames returns the frameLimiter for a SPDY connection with the given protocol.
	frames func(protocol string) *frameLimiter
	// memory is the pool from which the session takes forwardSession; nil means that the session takes none.
	memory *memoryPool
}

// serve calls run with a writer whose connection is watched, and with a request whose context ends when the client goes away or the
// server's base context ends. It closes the connection at the end, because the library leaves it open when the client creates no streams in
// time. It logs a record of each request.
func (u upgrade) serve(w http.ResponseWriter, req *http.Request, run func(http.ResponseWriter, *http.Request, *streamRecord)) error {
	record := newStreamRecord(req, u.verb, u.target, u.timeouts.idle)
	if err := requireUpgrade(req); err != nil {
		record.refuse(req.Context(), outcomeRefused)
		return err
	}
	leave, err := limitsOf(req.Context()).enter(record.caller.Name)
	if err != nil {
		record.refuse(req.Context(), outcomeTooMany)
		http.Error(w, "429 "+err.Error(), http.StatusTooManyRequests)
		return nil
	}
	defer leave()
	if u.memory != nil {
		if !u.memory.take(forwardSession) {
			streamsRefused.Inc()
			record.refuse(req.Context(), outcomeTooMany)
			http.Error(w, "429 too many port-forward sessions, they use all of the memory that is for them; end some", http.StatusTooManyRequests)
			return nil
		}
		defer u.memory.give(forwardSession)
	}
	if req.Context().Err() != nil { // the request may have ended during its authorization
		record.refuse(req.Context(), outcomeStopped)
		http.Error(w, "503 the request has ended", http.StatusServiceUnavailable)
		return nil
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	up := &upgradeWriter{ResponseWriter: w, record: record, gone: func(why error) {
		if !isRefusal(why) {
			why = clientGone{why}
		}
		cancel(why)
	}}
	ended := make(chan struct{})
	stop := up.cutAfter(ctx, ended)
	defer func() {
		record.close(ctx)
		close(ended)
		stop()
		cancel(nil)
		up.end((*watchedConn).close)
		up.wait()
	}()

	req = req.Clone(ctx)
	if wsstream.IsWebSocketRequest(req) {
		form := byteMessages
		if u.verb != verbPortForward || !wsstream.IsWebSocketRequestWithTunnelingProtocol(req) {
			form = offerMessages(req.Header, u.verb)
		}
		up.frames = func(string) frameChecker { return newMessageLimiter(form, u.verb != verbPortForward) }
	} else {
		up.frames = func(protocol string) frameChecker {
			frames := u.frames(protocol)
			frames.record = record
			return frames
		}
		up.protocol = offerProtocols(req.Header, u.legacyProtocol)
	}
	err = recoverPanic(ctx, func() error {
		defer func() {
			// The WebSocket library panics when it cannot take the connection over. The provider has not been called, so this is not its
			// panic.
			if up.whyLost() != nil {
				_ = recover()
			}
		}()
		run(up, req, record)
		return nil
	})
	if why := up.whyLost(); why != nil {
		return record.lost(ctx, why)
	}
	if up.taken() {
		return nil // the connection no longer speaks HTTP, so an error response is impossible
	}
	return err
}

// offerProtocols changes the protocols that a SPDY client offers. If the client offers none, the result is the legacy protocol. The library
// does not know v5, so v5 becomes v4: the addition of v5, closing a stream, always existed in SPDY. answer is the protocol for the response
// if it differs from the library's choice.
func offerProtocols(header http.Header, legacy string) (answer string) {
	offered := header.Values(httpstream.HeaderProtocolVersion)
	if strings.Join(offered, "") == "" {
		header.Set(httpstream.HeaderProtocolVersion, legacy)
		return ""
	}
	for name := range strings.SplitSeq(strings.Join(offered, ","), ",") {
		switch name = strings.TrimSpace(name); {
		case name == remotecommand.StreamProtocolV5Name && legacy == remotecommand.StreamProtocolV1Name:
			answer = name
		case slices.Contains(remotecommand.SupportedStreamingProtocols, name):
			return "" // both sides support this protocol
		}
	}
	if answer != "" {
		header.Set(httpstream.HeaderProtocolVersion, remotecommand.StreamProtocolV4Name)
	}
	return answer
}

// offerMessages reduces the offered protocols of a WebSocket client to the one that the library would choose, and returns the layout of its
// messages. If the layouts differed, a client could bypass the checks.
func offerMessages(header http.Header, verb string) messageForm {
	known := []string{"v4.channel.k8s.io", "v4.base64.channel.k8s.io"}
	if verb != verbPortForward {
		known = append(known, wsstream.ChannelWebSocketProtocol, wsstream.Base64ChannelWebSocketProtocol)
	}
	chosen := ""
	for name := range strings.SplitSeq(header.Get(wsstream.WebSocketProtocolHeader), ",") {
		switch name = strings.TrimSpace(name); {
		case name == remotecommand.StreamProtocolV5Name && verb != verbPortForward:
			header.Set(wsstream.WebSocketProtocolHeader, name)
			return channelMessages
		case chosen == "" && slices.Contains(known, name):
			chosen = name
		}
	}
	if chosen != "" {
		header.Set(wsstream.WebSocketProtocolHeader, chosen)
	}
	if strings.Contains(chosen, "base64") {
		return textMessages
	}
	return channelMessages
}

// requireUpgrade refuses a request without an upgrade. The library would also refuse it, but repeats the headers
// of the request in its answer, including the bearer token.
func requireUpgrade(req *http.Request) error {
	if wsstream.IsWebSocketRequest(req) {
		return nil
	}
	if httpstream.IsUpgradeRequest(req) &&
		strings.Contains(strings.ToLower(req.Header.Get(httpstream.HeaderUpgrade)), strings.ToLower(spdy.HeaderSpdy31)) {
		return nil
	}
	return errdefs.InvalidInput("the request must ask for an upgrade of the connection to SPDY/3.1 or WebSocket")
}
