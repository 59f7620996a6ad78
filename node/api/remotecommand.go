// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// serveRemoteCommand runs a session over SPDY or WebSocket. Attach uses the library's exec too, because the
// library's attach has no exit codes.
func serveRemoteCommand(w http.ResponseWriter, req *http.Request, u upgrade, opts remotecommand.Options, run sessionFunc) error {
	u.legacyProtocol = remotecommand.StreamProtocolV1Name
	var streams *execStreams
	u.frames = func(protocol string) *frameLimiter {
		n := announced(opts, protocol)
		frames := newFrameLimiter(n, 0)
		streams = newExecStreams(n)
		frames.exec = streams
		return frames
	}
	return u.serve(w, req, func(w http.ResponseWriter, req *http.Request, record *streamRecord) {
		s := session{opts, run, record}
		switch {
		case wsstream.IsWebSocketRequestWithStreamCloseProtocol(req):
			serveWebSocketV5(w, req, s, u.timeouts.idle)
		case wsstream.IsWebSocketRequest(req):
			remotecommand.ServeExec(w, req, s, "", "", "", nil, &opts,
				u.timeouts.idle, u.timeouts.creation, remotecommand.SupportedStreamingProtocols)
		default:
			serveSPDY(w, req, s, u.timeouts, func() *execStreams { return streams })
		}
	})
}

// announced returns the number of streams of a SPDY session with a protocol: the streams of the request, a
// stream for errors, and in newer protocols a stream for the size of a terminal.
func announced(opts remotecommand.Options, protocol string) int {
	n := 1
	for _, stream := range []bool{opts.Stdin, opts.Stdout, opts.Stderr, opts.TTY && resizes(protocol)} {
		if stream {
			n++
		}
	}
	return n
}

func resizes(protocol string) bool {
	return protocol != remotecommand.StreamProtocolV1Name && protocol != remotecommand.StreamProtocolV2Name
}
