// SPDX-License-Identifier: Apache-2.0

package toy

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/gorilla/websocket"
)

// The first byte of a message is the type of its content.
const (
	messageStdin  = 'i' // input; an empty message is its end
	messageSize   = 's' // Size of the terminal, in JSON
	messageStdout = 'o'
	messageStderr = 'e'
	messageExit   = 'x' // the exit code, in digits; the last message
)

// mostInput is the number of queued input messages for a command that does not read, so that a disconnect of the caller is detected.
const mostInput = 1024

// Size is the size of a terminal.
type Size struct {
	Rows    int `json:"rows"`
	Columns int `json:"columns"`
}

// execCommand runs a command in a running container. It ends with the container, or when the caller disconnects.
func (s *Server) execCommand(w http.ResponseWriter, r *http.Request) {
	k := s.findContainer(r.PathValue("group"), r.PathValue("container"))
	switch {
	case k == nil:
		refuseRequest(w, http.StatusNotFound, "there is no such container")
		return
	case !k.isRunning():
		refuseRequest(w, http.StatusBadRequest, "the container does not run")
		return
	}
	conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return // the caller has received the response
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(k.group.ctx)
	defer cancel()
	q, out := r.URL.Query(), &output{conn: conn}
	p := Process{
		Command: q["command"], Env: k.spec.Env, Stdout: out.streamOf(messageStdout), Stderr: out.streamOf(messageStderr), Stop: k.group.stop, Listen: k.group.openPort,
	}
	in, typed := io.Pipe()
	if q.Get("stdin") == "true" {
		p.Stdin = in
	}
	sizes := make(chan Size, 1)
	if q.Get("tty") == "true" {
		p.Sizes, p.Stderr = sizes, p.Stdout
	}
	input := make(chan []byte, mostInput)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer cancel() // the caller has disconnected, or the command has ended
		defer close(sizes)
		defer close(input)
		receiveMessages(ctx, conn, input, sizes)
	})
	reading.Go(func() {
		for b := range input {
			if len(b) == 0 {
				typed.Close()
			}
			_, _ = typed.Write(b) // the command may have ended
		}
	})
	defer reading.Wait()
	defer in.Close()
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { typed.CloseWithError(io.EOF) })()
	code := s.Work(ctx, p)
	if ctx.Err() != nil {
		code = killed
	}
	_, _ = out.streamOf(messageExit).Write(strconv.AppendInt(nil, int64(code), 10)) // the caller may have gone
}

// receiveMessages reads the caller's messages until the caller disconnects.
func receiveMessages(ctx context.Context, conn *websocket.Conn, input chan<- []byte, sizes chan<- Size) {
	for {
		_, message, err := conn.ReadMessage()
		if err != nil || len(message) == 0 {
			return
		}
		switch body := message[1:]; message[0] {
		case messageStdin:
			select {
			case input <- body:
			case <-ctx.Done():
			}
		case messageSize:
			var size Size
			if json.Unmarshal(body, &size) != nil {
				return
			}
			select {
			case sizes <- size:
			case <-ctx.Done():
			}
		}
	}
}

// output sends messages one at a time.
type output struct {
	mu   sync.Mutex
	conn *websocket.Conn // guarded by mu
}

func (o *output) streamOf(kind byte) io.Writer { return stream{o, kind} }

type stream struct {
	*output
	kind byte
}

// Write sends a message.
func (s stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(b), s.conn.WriteMessage(websocket.BinaryMessage, append([]byte{s.kind}, b...))
}
