// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// serveWebSocketV5 runs a session over a WebSocket with the protocol v5.channel.k8s.io. v5 adds a signal to v4 that closes one stream, so
// that stdin can end before the session. The library's exec server supports only v4; its WebSocket connection supports the signal.
func serveWebSocketV5(w http.ResponseWriter, req *http.Request, s session, idle time.Duration) {
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
		remotecommand.StreamProtocolV5Name: {Binary: true, Channels: []wsstream.ChannelType{
			remotecommand.StreamStdIn:  channelIf(s.opts.Stdin, wsstream.ReadChannel),
			remotecommand.StreamStdOut: channelIf(s.opts.Stdout, wsstream.WriteChannel),
			remotecommand.StreamStdErr: channelIf(s.opts.Stderr, wsstream.WriteChannel),
			remotecommand.StreamErr:    wsstream.WriteChannel,
			remotecommand.StreamResize: wsstream.ReadChannel,
		}},
	})
	conn.SetIdleTimeout(idle)
	_, streams, err := conn.Open(w, req)
	if err != nil {
		log.G(req.Context()).WithError(err).Debug("upgrade to WebSocket is refused")
		return
	}
	defer conn.Close()

	// An empty message tells the client that the session is established.
	status := streams[remotecommand.StreamErr]
	if _, err := status.Write(nil); err != nil {
		return
	}

	ctx := req.Context()
	resize := make(chan remotecommand.TerminalSize)
	decoded := make(chan struct{})
	go func() {
		defer close(decoded)
		decodeResize(ctx, streams[remotecommand.StreamResize], resize)
	}()
	err = s.do(ctx, streams[remotecommand.StreamStdIn], streams[remotecommand.StreamStdOut], streams[remotecommand.StreamStdErr], resize)
	if err := json.NewEncoder(status).Encode(sessionStatus(err)); err != nil {
		log.G(ctx).WithError(err).Debug("client left before it got the exit status")
	}
	conn.Close()
	<-decoded
}

func channelIf(wanted bool, t wsstream.ChannelType) wsstream.ChannelType {
	if wanted {
		return t
	}
	return wsstream.IgnoreChannel
}

// decodeResize passes terminal sizes on until the stream or ctx ends.
func decodeResize(ctx context.Context, from io.Reader, to chan<- remotecommand.TerminalSize) {
	defer close(to)
	decoder := json.NewDecoder(from)
	for {
		var size remotecommand.TerminalSize
		if err := decoder.Decode(&size); err != nil {
			return
		}
		select {
		case to <- size:
		case <-ctx.Done():
			return
		}
	}
}

// sessionStatus returns the outcome of a session as the status that clients expect on the error stream.
func sessionStatus(err error) metav1.Status {
	if err == nil {
		return metav1.Status{Status: metav1.StatusSuccess}
	}
	var exit utilexec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return metav1.Status{
			Status:  metav1.StatusFailure,
			Reason:  remotecommand.NonZeroExitCodeReason,
			Message: fmt.Sprintf("command terminated with non-zero exit code: %v", exit),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
				Type:    remotecommand.ExitCodeCauseType,
				Message: strconv.Itoa(exit.ExitStatus()),
			}}},
		}
	}
	return metav1.Status{
		Status:  metav1.StatusFailure,
		Reason:  metav1.StatusReasonInternalError,
		Message: fmt.Sprintf("Internal error occurred: %v", err),
		Code:    http.StatusInternalServerError,
	}
}
