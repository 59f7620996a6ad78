// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

// log is the log of all runs of a container.
func (s *Server) log(ctx context.Context, rec *record, query url.Values) (string, error) {
	var since *time.Time
	if text := query.Get("since"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		at := time.Unix(n, 0)
		if err != nil {
			if at, err = time.Parse("2006-01-02 15:04:05.000", strings.Replace(text, ",", ".", 1)); err != nil {
				return "", err
			}
		} else if n == 0 {
			return "", errors.New("since=0 is a fault of Zun")
		}
		since = &at
	}
	s.mu.Lock()
	runs := slices.Clone(rec.runs)
	s.mu.Unlock()
	var all strings.Builder
	for _, r := range runs {
		text, err := s.logOf(ctx, r, since)
		if err != nil {
			return "", err
		}
		all.WriteString(text)
	}
	lines := slices.Collect(strings.Lines(all.String()))
	if n, err := strconv.Atoi(query.Get("tail")); err == nil && n >= 0 {
		lines = lines[max(0, len(lines)-n):]
	}
	var out strings.Builder
	for _, line := range lines {
		if !isTrue(query.Get("timestamps")) {
			_, line, _ = strings.Cut(line, " ")
		}
		out.WriteString(line)
	}
	return out.String(), nil
}

// logOf returns the log of a run with the times of lines.
func (s *Server) logOf(ctx context.Context, r *run, since *time.Time) (string, error) {
	runner, ns, name := s.Fleet.Runner(r.id)
	opts := api.ContainerLogOpts{Timestamps: true}
	if since != nil {
		opts.SinceTime = *since
	}
	log, err := runner.GetContainerLogs(ctx, ns, name, "main", opts)
	if err != nil { // the run has not begun, or was stopped
		s.mu.Lock()
		defer s.mu.Unlock()
		return r.logged, nil
	}
	defer log.Close()
	data, err := io.ReadAll(log)
	if n := len(data); n > 0 && data[n-1] != '\n' {
		data = append(data, '\n')
	}
	return string(data), err
}

// session is a requested terminal.
type session struct {
	rec     *record
	command []string
	exec    string // its ID
	attach  bool
	sizes   chan api.TermSize
	used    bool
}

// console is the address of a session.
func (s *Server) console(r *http.Request, rec *record, c *session) string {
	token := newUUID()
	c.sizes = make(chan api.TermSize, 8)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions == nil {
		s.sessions = map[string]*session{}
	}
	s.sessions[token] = c
	base := s.Console
	if base == "" {
		base = strings.Replace(scheme(r), "http", "ws", 1) + "://" + r.Host + consolePath
	}
	address := base + "?token=" + token + "&uuid=" + rec.uuid
	if !c.attach {
		address += "&exec_id=" + c.exec
	}
	return address
}

// execute runs a command, or prepares a session that runs it.
func (s *Server) execute(r *http.Request, rec *record, query url.Values) (object, error) {
	command, err := split(query.Get("command"))
	if err != nil || len(command) == 0 {
		return nil, fail(http.StatusBadRequest, "invalid-value", "the command cannot be split: %v", err)
	}
	id := newHex()
	if isTrue(query.Get("interactive")) {
		c := &session{rec: rec, command: command, exec: id}
		return object{"output": nil, "exit_code": nil, "exec_id": id, "proxy_url": s.console(r, rec, c)}, nil
	}
	limit := s.ExecuteTimeout
	if limit == 0 {
		limit = 5 * time.Second
	}
	var out bytes.Buffer
	ended := make(chan error, 1)
	go func() { ended <- s.run(s.Context, rec, command, &emulator.Streams{Out: &out, Err: &out}) }() // the command continues after the limit
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err = <-ended:
	case <-timer.C:
		return nil, fail(http.StatusConflict, "conflict", "Timeout on executing command: %s", query.Get("command"))
	}
	code := 0
	var exit utilexec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitStatus()
	} else if err != nil {
		code = 126
		out.WriteString("OCI runtime exec failed: " + err.Error() + "\n")
	}
	return object{"output": out.String(), "exit_code": code, "exec_id": id, "proxy_url": nil}, nil
}

// split splits a command as a shell does.
func split(text string) (out []string, err error) {
	var word strings.Builder
	open, quote := false, rune(0)
	escaped := false
	for _, c := range text {
		switch {
		case escaped:
			word.WriteRune(c)
			escaped = false
		case c == '\\' && quote != '\'':
			escaped, open = true, true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, open = c, true
		case quote == 0 && (c == ' ' || c == '\t' || c == '\n'):
			if open {
				out = append(out, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(c)
			open = true
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("no closing quotation")
	}
	if open {
		out = append(out, word.String())
	}
	return out, nil
}

// run runs a command in the current run of a container.
func (s *Server) run(ctx context.Context, rec *record, command []string, to *emulator.Streams) error {
	s.mu.Lock()
	r := rec.last()
	s.mu.Unlock()
	runner, ns, name := s.Fleet.Runner(r.id)
	return runner.RunInContainer(ctx, ns, name, "main", command, to)
}

// resize sets the size of a terminal.
func (s *Server) resize(rec *record, query url.Values) error {
	w, err := strconv.ParseUint(query.Get("w"), 10, 16)
	h, errH := strconv.ParseUint(query.Get("h"), 10, 16)
	if err = errors.Join(err, errH); err != nil {
		return fail(http.StatusBadRequest, "invalid-value", "%v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.sessions {
		if c.rec == rec && c.exec == query.Get("exec_id") {
			select {
			case c.sizes <- api.TermSize{Width: uint16(w), Height: uint16(h)}:
			default:
			}
			return nil
		}
	}
	return fail(http.StatusBadRequest, "invalid", "no such exec instance: %s", query.Get("exec_id"))
}

// serveSession serves the address of a session with binary messages, without channels. The end of the command
// ends the connection.
func (s *Server) serveSession(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	s.mu.Lock()
	c := s.sessions[query.Get("token")]
	if c != nil && (c.used || c.rec.uuid != query.Get("uuid") || c.exec != query.Get("exec_id")) {
		c = nil
	}
	if c != nil {
		c.used = true
	}
	s.mu.Unlock()
	if c == nil {
		http.Error(w, "Invalid websocket token", http.StatusForbidden)
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host {
		http.Error(w, "Origin header does not match this host", http.StatusForbidden)
		return
	}
	conn, err := (&websocket.Upgrader{Subprotocols: []string{"binary", "base64"}}).Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered the request
	}
	defer conn.Close()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sessions, query.Get("token"))
	}()
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
			_, _ = typed.Write(data) // a command that has ended reads no more input
		}
	}()
	all := &emulator.Frames{Conn: conn}
	to := &emulator.Streams{In: in, Out: all, Err: all, Terminal: !c.attach || c.rec.body["tty"] == true, Sizes: c.sizes}
	if c.attach {
		s.mu.Lock()
		last := c.rec.last()
		s.mu.Unlock()
		runner, ns, name := s.Fleet.Runner(last.id)
		err = runner.AttachToContainer(ctx, ns, name, "main", to)
	} else {
		err = s.run(ctx, c.rec, c.command, to)
	}
	var exit utilexec.ExitError
	if err != nil && !errors.As(err, &exit) {
		_, _ = all.Write([]byte(strings.TrimSpace(err.Error()) + "\r\n"))
	}
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, "Target closed"), time.Now().Add(time.Second))
}
