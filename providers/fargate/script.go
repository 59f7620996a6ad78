// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Scripts with which a shell of the image tells what a session does not: how a command ended, and that its input has. Their first word is a mark that
// no command prints.
const (
	// tellEnd says how the command ended.
	tellEnd = `printf '\n%s %d\n' "$m" $?`
	// marked takes the mark away from the command.
	marked = `m=$1;shift;`
	// typed runs a command in a terminal, whose key for an interrupt is for the command alone.
	typed = marked + `trap : INT QUIT;"$@";` + tellEnd
	// plain runs one without a terminal, in one that changes nothing, if the image has stty, and says whether.
	plain = marked + `if stty raw -echo 2>/dev/null;then printf '%s raw\n' "$m";else printf '%s cooked\n' "$m";fi;`
	quiet = plain + `"$@" </dev/null;` + tellEnd
	// fed hands it the lines that follow, as printf %b reads them, up to a dot.
	fed = plain + `while IFS= read -r l&&[ "$l" != . ];do printf %b "$l";done|{ "$@";` + tellEnd + `;}`
)

// words is the command of a session.
func words(mark string, command []string, tty, input bool) string {
	script := quiet
	switch {
	case tty:
		script = typed
	case input:
		script = fed
	}
	quoted := []string{"sh", "-c"}
	for _, w := range append([]string{script, "sh", mark}, command...) {
		quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'"'"'`)+"'")
	}
	return strings.Join(quoted, " ")
}

// line writes bytes as printf %b reads them, with three digits each. It is one line, whatever is in it.
func line(data []byte) []byte {
	var out bytes.Buffer
	for _, b := range data {
		if b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == ' ' || b == '/' || b == '-' {
			out.WriteByte(b)
		} else { // a dot too: it is the end. The 0 is for shells that read only four digits
			fmt.Fprintf(&out, `\0%03o`, b)
		}
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// lastLine is what ends the input.
const lastLine = ".\n"

// output is what a session prints: the lines with the mark are not passed on.
type output struct {
	to    io.Writer
	mark  string
	begun bool // the line about the terminal was read, or there is none
	raw   bool // what comes was not changed by a terminal
	held  []byte
	ended bool
	code  int
	input bool // the command has input
}

// errNoTerminal is of a session with input, which the terminal would print again.
var errNoTerminal = errors.New("input without a terminal needs stty in the image: ask for a terminal, or use an image with it")

// Write implements io.Writer.
func (o *output) Write(data []byte) (int, error) {
	if o.ended {
		return len(data), nil
	}
	o.held = append(o.held, data...)
	if !o.begun {
		first, rest, whole := bytes.Cut(o.held, []byte("\n"))
		if !whole {
			return len(data), nil
		}
		said := strings.TrimSpace(string(first))
		o.raw, o.begun = said == o.mark+" raw", true
		switch {
		case o.raw:
			o.held = rest
		case said == o.mark+" cooked" && o.input:
			return 0, errNoTerminal
		case said == o.mark+" cooked":
			o.held, o.to = rest, lines{o.to}
		}
	}
	if at := bytes.LastIndex(o.held, []byte("\n"+o.mark+" ")); at >= 0 {
		text, _, whole := strings.Cut(string(o.held[at+len(o.mark)+2:]), "\n")
		if code, err := strconv.Atoi(strings.TrimSpace(text)); whole && err == nil {
			o.ended, o.code = true, code
			_, err := o.to.Write(bytes.TrimSuffix(o.held[:at], []byte("\r")))
			return len(data), err
		}
	}
	// What follows the last end of a line may be the mark.
	keep := len(o.held)
	if at := bytes.LastIndexByte(o.held, '\n'); at >= 0 && o.may(o.held[at+1:]) {
		keep = at
	} else if keep > 0 && o.held[keep-1] == '\r' {
		keep--
	}
	if keep > 0 && keep < len(o.held) && o.held[keep] == '\n' && o.held[keep-1] == '\r' {
		keep--
	}
	if at := bytes.LastIndexByte(o.held[:keep], '\n'); at >= 0 && keep == len(o.held)-1 && o.may(o.held[at+1:keep]) {
		keep = at // a code whose line is not whole
	}
	return len(data), o.pass(keep)
}

// may reports whether the begin of a line can be the begin of the mark with a code.
func (o *output) may(begin []byte) bool {
	text, mark := string(begin), o.mark+" "
	if len(text) <= len(mark) {
		return strings.HasPrefix(mark, text)
	}
	code, is := strings.CutPrefix(text, mark)
	_, err := strconv.Atoi(strings.TrimSuffix(code, "\r"))
	return is && err == nil
}

// pass passes the first n bytes on.
func (o *output) pass(n int) error {
	if n == 0 {
		return nil
	}
	_, err := o.to.Write(o.held[:n])
	o.held = append([]byte(nil), o.held[n:]...)
	return err
}

// lines takes the carriage returns away that a terminal makes of ends of lines.
type lines struct{ to io.Writer }

// Write implements io.Writer.
func (l lines) Write(data []byte) (int, error) {
	_, err := l.to.Write(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")))
	return len(data), err
}
