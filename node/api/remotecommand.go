// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// serveRemoteCommand runs a session over SPDY or WebSocket. Attach goes
// through the library's exec too: its attach knows no exit codes.
func serveRemoteCommand(w http.ResponseWriter, req *http.Request, u upgrade, opts remotecommand.Options, run sessionFunc) error {
	u.legacyProtocol = remotecommand.StreamProtocolV1Name
	// The library waits for the streams that the request announced; one more would hold its
	// goroutines for ever, also after the connection has ended.
	u.frames = func(protocol string) *frameLimiter { return newFrameLimiter(announced(opts, protocol), 0) }
	return u.serve(w, req, func(w http.ResponseWriter, req *http.Request, record *streamRecord) {
		s := session{opts, run, record}
		if wsstream.IsWebSocketRequestWithStreamCloseProtocol(req) {
			serveWebSocketV5(w, req, s, u.timeouts.idle)
			return
		}
		remotecommand.ServeExec(w, req, s, "", "", "", nil, &opts,
			u.timeouts.idle, u.timeouts.creation, remotecommand.SupportedStreamingProtocols)
	})
}

// announced returns how many streams a session has over SPDY with a protocol: those of
// the request, one for errors, and one for the size of a terminal in newer protocols.
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
