// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

const (
	// mostLines and mostBytes are the limits of one log response.
	defaultLines, mostLines, mostBytes = 500, 2000, 1 << 20
	// mostWords and longestWord are the limits of a command in the documentation of 2025-10-17. longestCommand
	// is the limit that a public client assumes: PyPI eci-as-sandbox 0.2.2.
	mostWords, longestWord, longestCommand = 20, 256, 2048
	sessionPath                            = "/exec/"
	// sessionFor is the time for which the address of a session is valid.
	sessionFor = 30 * time.Second
)

// answerLog answers DescribeContainerLog: the newest lines.
func (s *Server) answerLog(r *http.Request, form url.Values) (object, error) {
	g, err := s.findGroup(form)
	if err != nil {
		return nil, err
	}
	f := fields(form)
	tail := defaultLines
	if f.hasField("Tail") {
		tail = int(f.numberOf("Tail"))
	}
	if tail < 1 || tail > mostLines {
		return nil, newFailure(http.StatusBadRequest, "InvalidParameter", "Tail: want 1 to %d", mostLines)
	}
	opts := api.ContainerLogOpts{Tail: tail, Timestamps: f.isTrue("Timestamps"), Previous: f.isTrue("LastTime"), LimitBytes: int(f.numberOf("LimitBytes")), SinceSeconds: int(f.numberOf("SinceSeconds"))}
	if text := f.textOf("StartTime"); text != "" {
		if opts.SinceTime, err = time.Parse(time.RFC3339, text); err != nil {
			return nil, newFailure(http.StatusBadRequest, "InvalidParameter", "StartTime: want a time of RFC 3339")
		}
	}
	runner, ns, name := s.Fleet.Runner(s.Run(g.id))
	log, err := runner.GetContainerLogs(r.Context(), ns, name, f.textOf("ContainerName"), opts)
	if errdefs.IsNotFound(err) || errdefs.IsInvalidInput(err) {
		return nil, newFailure(http.StatusBadRequest, "InvalidParameter", "%v", err)
	}
	if err != nil {
		return nil, err
	}
	defer log.Close()
	data, err := io.ReadAll(log)
	if err != nil {
		return nil, err
	}
	if len(data) > mostBytes {
		data = data[len(data)-mostBytes:]
	}
	return object{"ContainerName": f.textOf("ContainerName"), "Content": string(data)}, nil
}

// session is a requested command.
type session struct {
	group, container string
	command          []string
	tty, stdin       bool
	ends             time.Time
}

// openExec answers ExecContainerCommand.
func (s *Server) openExec(r *http.Request, form url.Values) (object, error) {
	g, err := s.findGroup(form)
	if err != nil {
		return nil, err
	}
	f := fields(form)
	c := &session{group: s.Run(g.id), container: f.textOf("ContainerName"), tty: f.isTrue("TTY"), stdin: f.textOf("Stdin") != "false", ends: time.Now().Add(sessionFor)}
	if err := json.Unmarshal([]byte(f.textOf("Command")), &c.command); err != nil || len(c.command) == 0 || len(c.command) > mostWords {
		return nil, newFailure(http.StatusBadRequest, "InvalidParameter.ValueExceeded", "Command: want a JSON array of up to %d", mostWords)
	}
	for _, word := range c.command {
		if len([]rune(word)) > longestWord {
			return nil, newFailure(http.StatusBadRequest, "InvalidParameter.ValueExceeded", "Command: a word has more than %d characters", longestWord)
		}
	}
	if n := len(f.textOf("Command")); n > longestCommand {
		return nil, newFailure(http.StatusBadRequest, "InvalidParameter.ValueExceeded", "Command: it has %d bytes, and may have %d", n, longestCommand)
	}
	if f.isTrue("Sync") {
		if c.tty {
			return nil, newFailure(http.StatusBadRequest, "InvalidParameter", "Sync: not with TTY")
		}
		var out bytes.Buffer
		err := s.run(r.Context(), c, &emulator.Streams{Out: &out, Err: &out})
		var exit utilexec.ExitError
		if err != nil && !errors.As(err, &exit) {
			return nil, newFailure(http.StatusBadRequest, "IncorrectStatus", "%v", err)
		}
		return object{"SyncResponse": out.String()}, nil
	}
	secret := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions == nil {
		s.sessions = map[string]*session{}
	}
	s.sessions[secret] = c
	return object{"WebSocketUri": "wss://" + r.Host + sessionPath + "?s=" + secret, "HttpUrl": "https://" + r.Host + "/terminal?param=" + secret}, nil
}

func (s *Server) run(ctx context.Context, c *session, to *emulator.Streams) error {
	runner, ns, name := s.Fleet.Runner(c.group)
	return runner.RunInContainer(ctx, ns, name, c.container, c.command, to)
}

// The channels of a session. The first byte of a binary message is the channel. Source: PyPI eci-as-sandbox
// 0.2.2 names the channels, and another client cuts the first byte of each binary message; read on 2026-11-28.
// The content of exit is our choice, because neither client reads it.
const (
	channelInput byte = iota
	channelOutput
	channelErrors
	channelSize
	channelExit
)

// serveSession serves the address of a session. With Plain, a message is raw input, or raw output of both kinds.
// The end of the command ends the connection.
func (s *Server) serveSession(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	secret := r.URL.Query().Get("s")
	c := s.sessions[secret]
	delete(s.sessions, secret)
	s.mu.Unlock()
	if c == nil || time.Now().After(c.ends) {
		http.Error(w, "there is no such session", http.StatusForbidden)
		return
	}
	conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader has answered
	}
	defer conn.Close()
	plain := s.Plain.Load()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	in, typed := io.Pipe()
	defer in.Close()
	go func() { // ends with the connection
		defer cancel()
		for {
			_, data, err := conn.ReadMessage()
			if err != nil {
				typed.CloseWithError(io.EOF)
				return
			}
			if !plain {
				if len(data) == 0 || data[0] != channelInput { // sizes are ignored
					continue
				}
				data = data[1:]
			}
			if c.stdin {
				_, _ = typed.Write(data) // an ended command reads no more input
			}
		}
	}()
	all := &emulator.Frames{Conn: conn}
	to := &emulator.Streams{Out: all, Err: all, Terminal: c.tty}
	if !plain {
		to.Out, to.Err = channel{all, channelOutput}, channel{all, channelErrors}
	}
	if c.stdin {
		to.In = in
	}
	err = s.run(ctx, c, to)
	var exit utilexec.ExitError
	switch failed := err != nil && !errors.As(err, &exit); {
	case failed:
		_, _ = to.Out.Write([]byte(strings.TrimSpace(err.Error()) + "\n"))
	case !plain:
		code := 0
		if err != nil {
			code = exit.ExitStatus()
		}
		_, _ = channel{all, channelExit}.Write([]byte(strconv.Itoa(code)))
	}
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
}

// channel writes each piece as a message of a channel.
type channel struct {
	to   *emulator.Frames
	code byte
}

// Write implements io.Writer.
func (c channel) Write(data []byte) (int, error) {
	n, err := c.to.Write(append([]byte{c.code}, data...))
	return max(0, n-1), err
}
