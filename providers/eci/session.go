// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// session is a command that runs.
type session struct {
	conn      *websocket.Conn
	attach    api.AttachIO
	script    *script // nil for an image without a shell
	container string
	mu        sync.Mutex // of writes
}

// hasInput reports whether ECI is to pass input on: a script comes that way.
func (s *session) hasInput() bool {
	return s.attach.Stdin() != nil || s.script != nil && !s.attach.TTY()
}

// words is what ECI is asked to run.
func (s *session) words(command []string, rows, columns uint16) (string, error) {
	if s.script != nil {
		command = s.script.words(command, s.attach.TTY(), rows, columns)
	}
	if len(command) > mostWords {
		return "", errdefs.InvalidInputf("ECI takes a command of %d words, and this one has %d with what tells its exit code", mostWords, len(command))
	}
	for _, w := range command {
		if len([]rune(w)) > longestWord {
			return "", errdefs.InvalidInputf("ECI takes words of %d characters, and one of the command has %d: put it into a file", longestWord, len([]rune(w)))
		}
	}
	text, err := json.Marshal(command)
	return string(text), err
}

// size is that of the terminal of who asked; zero without one. Later ones are read, and are not passed on: nobody says how.
func (s *session) size(ctx context.Context) (rows, columns uint16) {
	sizes := s.attach.Resize()
	if !s.attach.TTY() || sizes == nil {
		return 0, 0
	}
	patience := time.NewTimer(sizePatience)
	defer patience.Stop()
	select {
	case first := <-sizes:
		rows, columns = first.Height, first.Width
	case <-patience.C:
	case <-ctx.Done():
	}
	go func() {
		for range sizes { // it is closed with the session
		}
	}()
	return rows, columns
}

func (s *session) write(data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn.WriteMessage(websocket.BinaryMessage, data)
}

// send passes the input on: through a terminal as it is, to a script in its words.
func (s *session) send(command []string) {
	in := s.attach.Stdin()
	written := s.script != nil && !s.attach.TTY()
	if written && s.write(s.script.begin(command, in != nil)) != nil || in == nil {
		return
	}
	buffer := make([]byte, 8<<10)
	for {
		n, err := in.Read(buffer)
		data := buffer[:n]
		if written && n > 0 {
			data = s.script.line(data)
		}
		if n > 0 && s.write(data) != nil {
			return
		}
		if err != nil {
			break
		}
	}
	if written {
		_ = s.write(s.script.end())
	}
}

// beat keeps a session from being closed for silence.
func (s *session) beat(ctx context.Context) {
	ticker := time.NewTicker(execBeat)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		err := s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(execBeat))
		s.mu.Unlock()
		if err != nil {
			s.conn.Close() // so that nobody waits for the rest
			return
		}
	}
}

// heard gives the session time until it must say something again.
func (s *session) heard() error { return s.conn.SetReadDeadline(time.Now().Add(execSilence)) }

// receive passes the output on until the command has ended.
func (s *session) receive(ctx context.Context) error {
	out := s.output()
	filter, _ := out.(*marked)
	for {
		err := s.heard()
		var data []byte
		if err == nil {
			_, data, err = s.conn.ReadMessage()
		}
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("the session ended before the command did, or the command in a container without a shell did, and ECI does not tell how: %w", hidden(err))
		}
		if _, err := out.Write(data); err != nil {
			return err
		}
		if filter != nil && filter.ended {
			if filter.code == 0 {
				return nil
			}
			return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", filter.code), Code: filter.code}
		}
	}
}

// output is where the output goes, without a mark.
func (s *session) output() io.Writer {
	to := s.attach.Stdout()
	switch {
	case s.script != nil && to != nil:
		return &marked{mark: s.script.mark, tty: s.attach.TTY(), next: to}
	case s.script != nil:
		return &marked{mark: s.script.mark, tty: s.attach.TTY(), next: io.Discard}
	case to != nil:
		return to
	}
	return io.Discard
}

// hidden is why a session ended, without an address.
func hidden(err error) error {
	var closed *websocket.CloseError
	if errors.As(err, &closed) {
		return closed
	}
	return errors.New(strings.TrimSpace(fmt.Sprintf("%T", err)))
}
