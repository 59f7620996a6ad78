// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The channels of a session. The channel is the first byte of a binary message. Two public clients of 2025 read
// messages in this way; an older client reads a message as output alone.
const (
	channelInput byte = iota
	channelOutput
	channelErrors
	channelSize // of a terminal; the format of its content is not documented
	channelExit
)

// guessAfter is how long to wait for the first message. A session without a message before its input counts as
// one with channels.
const guessAfter = time.Second

// framing is the format of the messages of a session. The first message with bytes shows the format.
type framing struct {
	mu       sync.Mutex
	channels bool          // guarded by mu
	told     bool          // guarded by mu; the first message came
	first    chan struct{} // closed by the first message
}

func newFraming() *framing { return &framing{first: make(chan struct{})} }

// open returns the channel and the bytes of a message. A text message, and a message without channels, is
// output.
func (f *framing) open(kind int, data []byte) (byte, []byte) {
	if len(data) == 0 {
		return channelOutput, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.told {
		f.told = true
		f.channels = kind == websocket.BinaryMessage && (data[0] == channelOutput || data[0] == channelErrors || data[0] == channelExit)
		close(f.first)
	}
	if !f.channels || kind != websocket.BinaryMessage {
		return channelOutput, data
	}
	return data[0], data[1:]
}

// hasChannels reports whether messages have channels.
func (f *framing) hasChannels() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.channels
}

// wait waits for the first message. If none comes, it decides that the session has channels.
func (f *framing) wait(ctx context.Context) error {
	patience := time.NewTimer(guessAfter)
	defer patience.Stop()
	select {
	case <-f.first:
	case <-patience.C:
		f.mu.Lock()
		f.channels = f.channels || !f.told
		f.mu.Unlock()
	case <-ctx.Done():
	}
	return ctx.Err()
}

// readExit reads the end of a command from a session: a number, or a status in the form of Kubernetes. The form
// is not documented, so another form is no error.
func readExit(data []byte) (int, bool) {
	text := strings.TrimSpace(string(data))
	if code, err := strconv.Atoi(text); err == nil {
		return code, true
	}
	var status metav1.Status
	if json.Unmarshal(data, &status) != nil {
		return 0, false
	}
	if status.Status == metav1.StatusSuccess {
		return 0, true
	}
	if status.Details == nil {
		return 0, false
	}
	for _, cause := range status.Details.Causes {
		if cause.Type == "ExitCode" {
			code, err := strconv.Atoi(cause.Message)
			return code, err == nil
		}
	}
	return 0, false
}
