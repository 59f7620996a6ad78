// SPDX-License-Identifier: Apache-2.0

package ecs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

// channelPath begins the paths of data channels.
const channelPath = "/v1/data-channel/"

// mostKeys is the maximum number of input messages that wait for a command.
const mostKeys = 4096

// session is a requested command.
type session struct {
	task             *task
	container, token string
	command          []string
	ends             time.Time
}

func (s *Server) executeCommand(body []byte) (any, error) {
	var in struct {
		Cluster, Task, Container, Command string
		Interactive                       bool
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if _, err := s.clusterName(in.Cluster); err != nil {
		return nil, err
	}
	t := s.findTask(in.Task)
	words, err := splitCommand(in.Command)
	switch {
	case t == nil || t.started.IsZero() || !t.stopping.IsZero():
		return nil, refusal{"InvalidParameterException", "The referenced task does not run."}
	case !in.Interactive:
		return nil, refusal{"InvalidParameterException", "Interactive is the only mode supported currently."}
	case !t.exec:
		return nil, refusal{"InvalidParameterException", "The execute command failed because execute command was not enabled when the task was run."}
	case err != nil || len(words) == 0:
		return nil, refusal{"InvalidParameterException", "command: want words, quoted as for a shell"}
	case t.containerStatus(in.Container) == nil:
		return nil, refusal{"InvalidParameterException", "The task has no container " + in.Container}
	}
	id := "ecs-execute-command-" + strings.ToLower(rand.Text())
	s.sessions[id] = &session{task: t, container: in.Container, token: rand.Text(), command: words, ends: time.Now().Add(time.Minute)}
	return map[string]any{
		"taskArn": t.arn, "containerName": in.Container, "interactive": true,
		"session": map[string]string{"sessionId": id, "tokenValue": s.sessions[id].token, "streamUrl": s.config.Streams + channelPath + id + "?role=publish_subscribe"},
	}, nil
}

// splitCommand splits a command as the agent does: at blanks, with quotes as in a shell.
func splitCommand(text string) (words []string, err error) {
	var word strings.Builder
	quote, inside := rune(0), false
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inside = r, true
		case r == ' ':
			if inside {
				words = append(words, word.String())
			}
			word.Reset()
			inside = false
		case r == '\\':
			return nil, errors.New("this server reads no backslash outside of quotes")
		default:
			word.WriteRune(r)
			inside = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote has no end")
	}
	if inside {
		words = append(words, word.String())
	}
	return words, nil
}

// serveChannel serves the data channel of a session.
func (s *Server) serveChannel(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, channelPath)
	s.mu.Lock()
	c := s.sessions[id]
	delete(s.sessions, id)
	s.mu.Unlock()
	if c == nil || time.Now().After(c.ends) {
		http.Error(w, "there is no such session", http.StatusForbidden)
		return
	}
	conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader has answered
	}
	defer conn.Close() // a second Close is harmless
	var open struct{ MessageSchemaVersion, RequestID, TokenValue, ClientID string }
	if conn.ReadJSON(&open) != nil || open.TokenValue != c.token || open.MessageSchemaVersion != "1.0" {
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	in, typed := io.Pipe()
	defer in.Close() // Close of a pipe never fails
	t := &terminal{sizes: make(chan api.TermSize, 1)}
	t.sizes <- api.TermSize{Width: 80, Height: 24} // the agent's first size
	defer t.close()
	keys := make(chan []byte, mostKeys)
	defer close(keys)
	go func() {
		for data := range keys {
			_, _ = typed.Write(data) // an ended command reads no more
		}
	}()
	d := newDataChannel(conn)
	shaken := make(chan struct{})
	reads := make(chan struct{})
	defer func() { <-reads }()
	defer conn.Close() // ends the goroutine that reads
	end := func() bool {
		cancel()
		_ = typed.CloseWithError(io.EOF) // CloseWithError never fails
		return false
	}
	go func() {
		defer close(reads)
		// A broken connection does not end the session: the client may come back. Only the flag or the command
		// ends it.
		d.read(func(payload uint32, data []byte) bool {
			switch payload {
			case 6: // HandshakeResponse
				close(shaken)
			case 1:
				select {
				case keys <- data:
				default: // no reader
					return end()
				}
			case 3:
				t.sendSize(data)
			case 10: // a flag to end the session
				return end()
			}
			return true
		})
	}()
	d.sendPayload(5, []byte(`{"AgentVersion":"3.1.1260.0","RequestedClientActions":[{"ActionType":"SessionType","ActionParameters":{"SessionType":"InteractiveCommands"}}]}`))
	select {
	case <-shaken:
	case <-ctx.Done():
		return
	}
	d.sendPayload(7, []byte(`{"HandshakeTimeToComplete":1000000,"CustomerMessage":""}`))
	runner, namespace, name := s.fleet.Runner(c.task.id)
	s.countCommands(1)
	err = runner.RunInContainer(ctx, namespace, name, c.container, c.command, &emulator.Streams{In: in, Out: d, Terminal: true, Sizes: t.sizes})
	s.countCommands(-1)
	said := ""
	var exit utilexec.ExitError
	if err != nil && !errors.As(err, &exit) { // a session reports no exit code
		said = err.Error()
	}
	d.close(said)
}

// countCommands adds to the number of running commands of sessions.
func (s *Server) countCommands(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands += n
}

// Commands returns the number of running commands of sessions, for tests.
func (s *Server) Commands() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commands
}

// terminal has the sizes of the terminal of a session.
type terminal struct {
	mu    sync.Mutex
	over  bool              // guarded by mu; sizes is closed
	sizes chan api.TermSize // written to with mu held
}

func (t *terminal) sendSize(data []byte) {
	var size struct{ Cols, Rows uint16 }
	if json.Unmarshal(data, &size) != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	select {
	case <-t.sizes: // only the newest size matters
	default:
	}
	t.sizes <- api.TermSize{Width: size.Cols, Height: size.Rows}
}

func (t *terminal) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	close(t.sizes)
}
