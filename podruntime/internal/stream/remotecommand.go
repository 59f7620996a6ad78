// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/moby/spdystream"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

const (
	// outputGrace is how long an ended session waits until the client has read the output.
	outputGrace = 500 * time.Millisecond
	// maxStatus is the maximum size of a runtime's message about the result of a session.
	maxStatus = 1 << 20
)

// errSilent is the error of a session that ended without a result of the runtime.
var errSilent = errors.New("the runtime closed the connection and did not say how the session ended")

// session is one exec or attach session over SPDY. Streams that the client did not request are nil.
type session struct {
	attach                                api.AttachIO
	status, stdin, stdout, stderr, resize *spdystream.Stream
}

// remoteCommand connects the session at a URL to attach, and returns its result.
func remoteCommand(ctx context.Context, url string, attach api.AttachIO) error {
	conn, err := openConnection(ctx, url, remotecommand.StreamProtocolV4Name)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	var resizes sync.WaitGroup
	defer func() {
		close(done)
		conn.close()
		resizes.Wait()
	}()
	s := &session{attach: attach}
	if err := s.createStreams(conn); err != nil {
		return s.preferCause(ctx, err)
	}
	if s.stdin != nil {
		go s.copyStdin()
	}
	if s.resize != nil {
		resizes.Go(func() { s.copySizes(done) })
	}
	return s.preferCause(ctx, s.awaitResult(ctx))
}

// createStreams makes the streams that the server expects, in the order of the protocol.
func (s *session) createStreams(conn *connection) error {
	for _, stream := range []struct {
		name   string
		to     **spdystream.Stream
		wanted bool
	}{
		{corev1.StreamTypeError, &s.status, true},
		{corev1.StreamTypeStdin, &s.stdin, s.attach.Stdin() != nil},
		{corev1.StreamTypeStdout, &s.stdout, s.attach.Stdout() != nil},
		{corev1.StreamTypeStderr, &s.stderr, hasStderr(s.attach)},
		{corev1.StreamTypeResize, &s.resize, s.attach.TTY()},
	} {
		if !stream.wanted {
			continue
		}
		made, err := conn.createStream(corev1.StreamType, stream.name)
		if err != nil {
			return err
		}
		*stream.to = made
	}
	return nil
}

// copyStdin sends the client's input, and the end of the input.
func (s *session) copyStdin() {
	_, _ = io.Copy(s.stdin, s.attach.Stdin())
	_ = s.stdin.Close()
}

// copySizes sends the sizes of the client's terminal.
func (s *session) copySizes(done <-chan struct{}) {
	sizes := s.attach.Resize()
	for {
		select {
		case <-done:
			return
		case size, ok := <-sizes:
			if !ok || json.NewEncoder(s.resize).Encode(remotecommand.TerminalSize{Width: size.Width, Height: size.Height}) != nil {
				return
			}
		}
	}
}

// awaitResult forwards the output until it ends, and returns the server's result.
func (s *session) awaitResult(ctx context.Context) error {
	var outputs sync.WaitGroup
	if s.stdout != nil {
		outputs.Go(func() { passOn(s.attach.Stdout(), s.stdout) })
	}
	if s.stderr != nil {
		outputs.Go(func() { passOn(s.attach.Stderr(), s.stderr) })
	}
	result := make(chan error, 1)
	go func() {
		err := readStatus(s.status)
		outputs.Wait()
		result <- err
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	waitBriefly(result) // ctx has closed the connection, so the streams end
	return context.Cause(ctx)
}

// waitBriefly waits for a copy to end, with a time limit for a client that no longer reads: the client's streams are only closed after the call of
// its session has returned.
func waitBriefly[T any](ended <-chan T) {
	timer := time.NewTimer(outputGrace)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// passOn copies a whole stream. If the reader fails, passOn discards the rest, because an unread stream blocks the other streams of its connection.
func passOn(to io.Writer, from io.Reader) {
	if _, err := io.Copy(to, from); err != nil {
		_, _ = io.Copy(io.Discard, from)
	}
}

// preferCause returns the reason for the end of ctx instead of the error that the end caused.
func (s *session) preferCause(ctx context.Context, err error) error {
	var exit utilexec.ExitError
	if err != nil && ctx.Err() != nil && !errors.As(err, &exit) {
		return fmt.Errorf("session with the runtime: %w", context.Cause(ctx))
	}
	return err
}

// readStatus reads the result of a session.
func readStatus(from io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(from, maxStatus))
	if err != nil {
		return fmt.Errorf("read how the session ended: %w", err)
	}
	if len(text) == 0 {
		return errSilent
	}
	var answer metav1.Status
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("read how the session ended: %w", err)
	}
	switch {
	case answer.Status == metav1.StatusSuccess:
		return nil
	case answer.Reason == remotecommand.NonZeroExitCodeReason:
		return exitError(answer.Details)
	default:
		return errors.New(trimServerText(answer.Message))
	}
}

func exitError(details *metav1.StatusDetails) error {
	if details != nil {
		for _, cause := range details.Causes {
			if cause.Type != remotecommand.ExitCodeCauseType {
				continue
			}
			code, err := strconv.Atoi(cause.Message)
			if err != nil {
				return fmt.Errorf("the runtime reports an exit code that is no number: %w", err)
			}
			return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", code), Code: code}
		}
	}
	return errors.New("the runtime reports that the command failed, without its exit code")
}

// trimServerText removes the streaming server's text around the error of the runtime, because the server of this node adds it again.
func trimServerText(message string) string {
	for _, words := range []string{"Internal error occurred: ", "error executing command in container: ", "error attaching to container: "} {
		message = strings.TrimPrefix(message, words)
	}
	if message == "" {
		return "the runtime reports a failure without a reason"
	}
	return message
}
