// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/websession"
)

const (
	// mostWords, longestWord and longestCommand are the limits of ECI for a command: words, characters of a
	// word, and bytes of all words as JSON. The last limit is not in the documentation of ECI: a public client
	// keeps it.
	mostWords, longestWord, longestCommand = 20, 256, 2048
	// execSilence is how long a session may be silent, even without a report that it is alive.
	execSilence = 3 * websession.Beat
)

// session is a running command.
type session struct {
	conn      *websession.Session
	attach    api.AttachIO
	shell     *shellexec.Exec // nil for an image without a shell
	out, errs io.Writer
	framing   *framing
}

// newSession returns the session of a command that runs without a shell.
func newSession(attach api.AttachIO) *session {
	s := &session{attach: attach, out: io.Discard, framing: newFraming()}
	if to := attach.Stdout(); to != nil {
		s.out = to
	}
	if s.errs = s.out; attach.Stderr() != nil {
		s.errs = attach.Stderr()
	}
	return s
}

// useShell runs a command through a shell of the container. ECI limits the words of a command, so the shell
// reads the script from its input. Its output has the standard error of the command. The standard error has only the
// messages of the shell itself, which could split the end mark of the shell in the output.
func (s *session) useShell(command []string, rows, columns uint16) {
	s.shell = service.Shell(s.attach, shellexec.Options{Command: command, By: shellexec.Reading, Rows: rows, Columns: columns})
	if s.out = s.shell; s.attach.Stderr() == nil {
		s.errs = io.Discard
	}
}

// hasInput reports whether ECI must pass input on. A script is input too.
func (s *session) hasInput() bool {
	return s.attach.Stdin() != nil || s.shell != nil && s.shell.NeedsInput()
}

// words returns the command for ECI.
func (s *session) words(command []string) (string, error) {
	if s.shell != nil {
		command = s.shell.Command()
	}
	if len(command) > mostWords {
		return "", errdefs.InvalidInputf("ECI takes a command of %d words, and this one has %d with what tells its exit code", mostWords, len(command))
	}
	for _, w := range command {
		if len([]rune(w)) > longestWord {
			return "", errdefs.InvalidInputf("ECI takes words of %d characters, and one of the command has %d: put it into a file", longestWord, len([]rune(w)))
		}
	}
	var text strings.Builder
	as := json.NewEncoder(&text)
	as.SetEscapeHTML(false) // escaping makes six bytes of one
	if err := as.Encode(command); err != nil {
		return "", err
	}
	out := strings.TrimSuffix(text.String(), "\n")
	if len(out) > longestCommand {
		return "", errdefs.InvalidInputf("ECI takes a command of %d bytes, and this one has %d with what tells its exit code: put it into a file", longestCommand, len(out))
	}
	return out, nil
}

// write sends input.
func (s *session) write(data []byte) error {
	if s.framing.hasChannels() {
		data = append([]byte{channelInput}, data...)
	}
	return s.conn.Send(data)
}

// send passes the input on: encoded for a shell, or else unchanged.
func (s *session) send(ctx context.Context) {
	in := s.attach.Stdin()
	if s.shell != nil {
		_ = s.shell.Send(ctx, in, s.write) // ends with the session
		return
	}
	if in != nil && s.framing.wait(ctx) == nil {
		websession.CopyInput(in, s.write)
	}
}

// heard extends the deadline for the next message of the session.
func (s *session) heard() error { return s.conn.SetReadDeadline(time.Now().Add(execSilence)) }

// receive passes the output on until the command has ended.
func (s *session) receive(ctx context.Context) error {
	for {
		err := s.heard()
		var kind int
		var data []byte
		if err == nil {
			kind, data, err = s.conn.ReadMessage()
		}
		if err != nil {
			if s.shell != nil {
				_ = s.shell.Flush()
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("the session ended before the command did, or the command in a container without a shell did, and ECI does not tell how: %w", hidden(err))
		}
		channel, data := s.framing.open(kind, data)
		switch channel {
		case channelOutput:
			_, err = s.out.Write(data)
		case channelErrors:
			_, err = s.errs.Write(data)
		case channelExit:
			if code, ok := readExit(data); ok {
				return s.ended(code)
			}
		}
		if err != nil {
			return err
		}
		if s.shell == nil {
			continue
		}
		if ended, err := s.shell.Ended(); ended {
			return err
		}
	}
}

// ended returns how the command ended, as ECI has reported it.
func (s *session) ended(code int) error {
	if s.shell != nil {
		if ended, err := s.shell.Ended(); ended {
			return err
		}
		if err := s.shell.Flush(); err != nil {
			return err
		}
	}
	if code == 0 {
		return nil
	}
	return utilexec.CodeExitError{Err: fmt.Errorf("the command ended with exit code %d", code), Code: code}
}

// hidden returns the reason why a session ended, without the address.
func hidden(err error) error {
	var closed *websocket.CloseError
	if errors.As(err, &closed) {
		return closed
	}
	return errors.New(strings.TrimSpace(fmt.Sprintf("%T", err)))
}
