// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/gorilla/websocket"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

// session is a program that waits for the streams of its terminal.
type session struct {
	group     *group
	container string
	program   string
	password  string
	size      api.TermSize
}

func (s *Server) answerLogs(w http.ResponseWriter, r *http.Request, name, container string) {
	g := s.findGroup(name)
	if g == nil {
		refuseRequest(w, http.StatusNotFound, "ResourceNotFound", "The Resource 'Microsoft.ContainerInstance/containerGroups/"+name+"' was not found.")
		return
	}
	stamps, _ := strconv.ParseBool(r.URL.Query().Get("timestamps")) // a missing value is false
	tail, _ := strconv.Atoi(r.URL.Query().Get("tail"))              // a missing value means all
	runner, namespace, id := s.fleet.Runner(s.idOf(g))
	log, err := runner.GetContainerLogs(r.Context(), namespace, id, container, api.ContainerLogOpts{Timestamps: stamps, Tail: tail})
	if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsInvalidInput(err) {
		refuseRequest(w, http.StatusInternalServerError, "InternalServerError", err.Error())
		return
	}
	var text []byte
	if err == nil {
		defer log.Close()
		if text, err = io.ReadAll(log); err != nil {
			refuseRequest(w, http.StatusInternalServerError, "InternalServerError", err.Error())
			return
		}
	}
	answerJSON(w, http.StatusOK, map[string]any{"content": string(text)})
}

func (s *Server) openExec(w http.ResponseWriter, r *http.Request, name, container string) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		refuseRequest(w, http.StatusBadRequest, "InvalidRequestContent", err.Error())
		return
	}
	if problems := checkModel("ContainerExecRequest", data); len(problems) > 0 {
		refuseRequest(w, http.StatusBadRequest, "InvalidRequestContent", strings.Join(problems, "; "))
		return
	}
	var asked struct {
		Command      string
		TerminalSize *struct{ Rows, Cols uint16 }
	}
	if err = json.Unmarshal(data, &asked); err != nil {
		refuseRequest(w, http.StatusBadRequest, "InvalidRequestContent", err.Error())
		return
	}
	g := s.findGroup(name)
	switch {
	case len(strings.Fields(asked.Command)) != 1: // the vendor's documentation of exec requires one word
		refuseRequest(w, http.StatusBadRequest, "InvalidCommand", "The command is one program, without arguments.")
		return
	case g == nil:
		refuseRequest(w, http.StatusNotFound, "ResourceNotFound", "The Resource 'Microsoft.ContainerInstance/containerGroups/"+name+"' was not found.")
		return
	}
	id := rand.Text()
	one := &session{group: g, container: container, program: strings.TrimSpace(asked.Command), password: rand.Text(), size: api.TermSize{Height: 24, Width: 80}}
	if asked.TerminalSize != nil {
		one.size = api.TermSize{Height: asked.TerminalSize.Rows, Width: asked.TerminalSize.Cols}
	}
	s.mu.Lock()
	s.sessions[id] = one
	s.mu.Unlock()
	answerJSON(w, http.StatusOK, map[string]string{"webSocketUri": "wss://" + r.Host + "/sessions/" + id, "password": one.password})
}

// runSession runs a session. The first message is the password, and the others are input and output.
func (s *Server) runSession(w http.ResponseWriter, r *http.Request, id string) {
	s.mu.Lock()
	one := s.sessions[id]
	delete(s.sessions, id)
	s.mu.Unlock()
	if one == nil {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	upgrader := websocket.Upgrader{}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader has answered
	}
	defer conn.Close()
	if kind, data, err := conn.ReadMessage(); err != nil || kind != websocket.TextMessage || string(data) != one.password {
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	in, feed := io.Pipe()
	defer in.Close() // unblocks later writes, which have no reader
	go func() {
		defer cancel()
		for {
			_, data, err := conn.ReadMessage()
			if err != nil {
				_ = feed.CloseWithError(io.EOF)
				return
			}
			if _, err := feed.Write(data); err != nil {
				return
			}
		}
	}()
	out, sizes := &emulator.Frames{Conn: conn}, make(chan api.TermSize, 1)
	sizes <- one.size
	runner, namespace, name := s.fleet.Runner(s.idOf(one.group))
	err = runner.RunInContainer(ctx, namespace, name, one.container, []string{one.program}, &emulator.Streams{In: in, Out: out, Terminal: true, Sizes: sizes})
	if err != nil && ctx.Err() == nil {
		var code interface{ ExitStatus() int }
		if !errors.As(err, &code) { // the command did not run
			_, _ = fmt.Fprintf(out, "%v\n", err)
		}
	}
	_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
}
