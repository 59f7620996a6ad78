// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// script lets a shell of the image tell what ECI does not: how a command ended, and that its input has. The shell needs nothing but what POSIX
// has built in.
//
// Without a terminal it reads a line with the command, and then one line for each piece of the input. Lines are as printf %b
// reads them, so they hold any byte.
type script struct {
	mark string // that no command prints
}

const (
	// reader runs the line that it reads.
	reader = `m=$1;IFS= read -r l;eval "$(printf %b "$l")"`
	// teller runs its arguments, and says how they ended; typed does so in a terminal. Both outputs are one: of two that ECI
	// makes one of, what the command wrote last into the other could come after the mark, and be lost.
	teller = `"$@" 2>&1;printf '\n%s %s\n' "$m" $?`
	typed  = `m=$1;shift;` + teller
	// feeder hands the lines that follow to the command.
	feeder = `while IFS= read -r l&&[ "$l" != . ];do printf %b "$l";done|`
)

// words is the command for ECI.
func (s *script) words(command []string, tty bool, rows, columns uint16) []string {
	if tty {
		text := typed
		if rows > 0 && columns > 0 {
			text = fmt.Sprintf("stty rows %d cols %d 2>/dev/null;", rows, columns) + typed
		}
		return append([]string{"sh", "-c", text, "sh", s.mark}, command...)
	}
	return []string{"sh", "-c", reader, "sh", s.mark}
}

// begin is the line with the command.
func (s *script) begin(command []string, input bool) []byte {
	var text strings.Builder
	text.WriteString("set --")
	for _, word := range command {
		text.WriteString(" '" + strings.ReplaceAll(word, "'", `'\''`) + "'")
	}
	text.WriteString(";")
	if input {
		text.WriteString(feeder + "{ " + teller + ";}")
	} else {
		text.WriteString("</dev/null " + teller)
	}
	return s.line([]byte(text.String()))
}

// line writes bytes as printf %b reads them, in three digits, after which no digit follows. It is one line, whatever is in it.
func (s *script) line(data []byte) []byte {
	var line bytes.Buffer
	for _, b := range data {
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b == ' ', b == '/', b == '-', b == '_', b == '=', b == ',', b == ':':
			line.WriteByte(b)
		default: // a dot too: it is the end
			fmt.Fprintf(&line, `\%03o`, b)
		}
	}
	line.WriteByte('\n')
	return line.Bytes()
}

// end is the end of the input.
func (s *script) end() []byte { return []byte(".\n") }

// marked is an output that ends with a mark and an exit code, which are not passed on.
type marked struct {
	mark  string
	tty   bool // lines end with two bytes
	next  io.Writer
	held  []byte // that may be the beginning of the mark
	ended bool
	code  int
}

// Write implements io.Writer.
func (m *marked) Write(data []byte) (int, error) {
	m.held = append(m.held, data...)
	if head, code, ok := m.last(); ok {
		m.ended, m.code = true, code
		m.held = nil
		_, err := m.next.Write(head)
		return len(data), err
	}
	// What the mark could begin with is kept back: an end of a line, with a terminal two bytes, and all after it.
	keep := len(m.held)
	for at := len(m.held) - 1; at >= 0 && at >= len(m.held)-len(m.mark)-16; at-- {
		if c := m.held[at]; (c == '\n' || c == '\r') && m.begins(m.held[at:]) {
			keep = at
		}
	}
	_, err := m.next.Write(m.held[:keep])
	m.held = append([]byte(nil), m.held[keep:]...)
	return len(data), err
}

// begins reports whether bytes may be the beginning of the mark with its code.
func (m *marked) begins(tail []byte) bool {
	text := strings.TrimLeft(string(tail), "\r\n")
	return strings.HasPrefix(m.mark+" ", text) || strings.HasPrefix(text, m.mark+" ")
}

// last finds the mark with its code.
func (m *marked) last() (head []byte, code int, ok bool) {
	at := bytes.LastIndex(m.held, []byte("\n"+m.mark+" "))
	if at < 0 {
		return nil, 0, false
	}
	rest := string(m.held[at+len(m.mark)+2:])
	text, _, whole := strings.Cut(rest, "\n")
	code, err := strconv.Atoi(strings.TrimSpace(text))
	if !whole || err != nil {
		return nil, 0, false
	}
	head = m.held[:at]
	if m.tty {
		head = bytes.TrimSuffix(head, []byte("\r"))
	}
	return head, code, true
}

// shells remembers which containers have a shell.
type shells struct {
	mu    sync.Mutex
	known map[string]bool // guarded by mu; by the ID of a run
}

// mostShells bounds what is remembered.
const mostShells = 1000

// hasShell asks a container to run a shell, by the request of ECI that tells the output. A run that has one is not asked again; one that
// seems to have none may not have been ready.
func (d *driver) hasShell(ctx context.Context, group, container, run string) (bool, error) {
	d.shells.mu.Lock()
	has := d.shells.known[run]
	d.shells.mu.Unlock()
	if has {
		return true, nil
	}
	mark := rand.Text()
	var answer execAnswer
	err := d.client.call(ctx, "ExecContainerCommand", execRequest{
		ContainerGroupID: group, ContainerName: container, Command: `["sh","-c","echo ` + mark + `"]`, Stdin: new(false), Sync: true,
	}, &answer)
	var said *apiError
	switch {
	case err == nil:
		has = strings.Contains(answer.SyncResponse, mark)
	case errors.As(err, &said) && said.status == http.StatusBadRequest && !said.throttled(): // how ECI says that there is no shell is not documented
	default:
		return false, err
	}
	if !has {
		return false, nil
	}
	d.shells.mu.Lock()
	defer d.shells.mu.Unlock()
	if d.shells.known == nil || len(d.shells.known) >= mostShells {
		d.shells.known = map[string]bool{}
	}
	d.shells.known[run] = true
	return true, nil
}
